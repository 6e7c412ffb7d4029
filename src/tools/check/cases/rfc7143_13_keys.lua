-- SPDX-License-Identifier: BSD-2-Clause
-- rfc7143_13_keys.lua: RFC 7143 §6.1, §6.2, §13, RFC 7144 §7: the keys of the operational negotiation, each with good and bad values.
rfc "7143"

local MAX24 = 16777215

-- name, section, smallest and largest value, function of the result
local numbers = {
	{ "MaxConnections", "13.2", 1, 65535, "min" },
	{ "MaxBurstLength", "13.13", 512, MAX24, "min" },
	{ "FirstBurstLength", "13.14", 512, MAX24, "min" },
	{ "DefaultTime2Wait", "13.15", 0, 3600, "max" },
	{ "DefaultTime2Retain", "13.16", 0, 3600, "min" },
	{ "MaxOutstandingR2T", "13.17", 1, 65535, "min" },
	{ "ErrorRecoveryLevel", "13.20", 0, 2, "min" },
}

-- name, section, function of the result
local booleans = {
	{ "InitialR2T", "13.10", "or" },
	{ "ImmediateData", "13.11", "and" },
	{ "DataPDUInOrder", "13.18", "or" },
	{ "DataSequenceInOrder", "13.19", "or" },
}

-- The number of a numerical constant, decimal or hexadecimal (§6.1)
local function number(text)
	if text and text:match("^0[xX]%x+$") then return tonumber(text:sub(3), 16) end
	return text and text:match("^%d+$") and tonumber(text)
end

-- Fails unless a number is admissible as the answer to a proposal
local function check_answer(key, answer, proposed, smallest, largest, rule)
	local n = number(answer)
	if not n then fail("%s=%s: the answer to %s is not a number", key, tostring(answer), proposed) end
	if n < smallest or n > largest then fail("%s=%s: the answer is out of range", key, answer) end
	if rule == "min" and n > proposed then fail("%s=%s: the answer is above the %d that was proposed", key, answer, proposed) end
	if rule == "max" and n < proposed then fail("%s=%s: the answer is below the %d that was proposed", key, answer, proposed) end
end

for _, row in ipairs(numbers) do
	local key, section, smallest, largest, rule = table.unpack(row)
	for _, value in ipairs { smallest, largest, (smallest + largest) // 2 } do
		case {
			section = section, name = key .. "-" .. value, family = "number", clauses = "6.2.2 #1 #3",
			what = ("A proposal of %s=%d is answered with the same key and a value that the function (%simum) allows."):format(key, value, rule),
			run = function(t)
				local keys = t:connect():answer_to { key .. "=" .. value }
				if key == "FirstBurstLength" and keys[key] == "Irrelevant" then return end
				check_answer(key, keys[key], value, smallest, largest, rule)
			end,
		}
	end
	case {
		section = "6.1", name = key .. "-hexadecimal", family = "hexadecimal", clauses = "6.1",
		what = "A number of " .. key .. " can be hexadecimal.",
		run = function(t)
			local value = math.max(smallest, math.min(largest, 1024))
			local keys = t:connect():answer_to { ("%s=0x%x"):format(key, value) }
			check_answer(key, keys[key], value, smallest, largest, rule)
		end,
	}
	for word, value in pairs { below = tostring(smallest - 1), above = tostring(largest + 1), text = "many", empty = "", negative = "-5",
		fraction = "1.5", huge = "18446744073709551616", space = " 1024", suffix = "1024K", two = "1024,2048", range = "512~1024" } do
		case {
			section = section, name = ("%s-bad-%s"):format(key, word), family = "bad-number", clauses = "6.2.2 #2",
			what = ("%s=%s is not admissible: the target rejects it, chooses an admissible value, or refuses the login."):format(key, value),
			why = "A target that takes a value out of bounds divides by zero, or allocates what it does not have.",
			run = function(t)
				local c = t:connect()
				local r, why = c:propose { key .. "=" .. value }
				if why == "timeout" then fail("no answer") end
				if not r or r.status ~= 0 then return end
				local answer = r.keys[key]
				if answer == "Reject" then return end
				check_answer(key, answer, 0, smallest, largest, "any")
			end,
		}
	end
end

for _, row in ipairs(booleans) do
	local key, section, rule = table.unpack(row)
	for _, value in ipairs { "Yes", "No" } do
		case {
			section = section, name = key .. "-" .. value, family = "boolean", clauses = "6.2.2 #4 #5",
			what = ("A proposal of %s=%s is answered as the function %s says."):format(key, value, rule:upper()),
			run = function(t)
				local answer = t:connect():answer_to({ key .. "=" .. value })[key]
				local decided = rule == "or" and value == "Yes" or rule == "and" and value == "No"
				if answer == nil and decided then return end
				if decided then equal(answer, value, key) end
				if answer ~= "Yes" and answer ~= "No" then fail("%s=%s", key, tostring(answer)) end
			end,
		}
	end
	for word, value in pairs { lower = "yes", number = "1", text = "Maybe", empty = "", list = "Yes,No" } do
		case {
			section = section, name = ("%s-bad-%s"):format(key, word), family = "bad-boolean", clauses = "6.2.2 #2",
			what = ("%s=%s is not admissible: the target rejects it, chooses an admissible value, or refuses the login."):format(key, value),
			run = function(t)
				local r, why = t:connect():propose { key .. "=" .. value }
				if why == "timeout" then fail("no answer") end
				if not r or r.status ~= 0 then return end
				local answer = r.keys[key]
				if answer ~= "Reject" and answer ~= "Yes" and answer ~= "No" then fail("%s=%s", key, tostring(answer)) end
			end,
		}
	end
end

-- ---- lists ----

for _, key in ipairs { "HeaderDigest", "DataDigest" } do
	for word, row in pairs { none = { "None", "None" }, first = { "None,CRC32C", "None" }, extension = { "Z-org.example.sum,None", "None" },
		unknown = { "X1,X2", "Reject" }, lower = { "crc32c,None", "None" } } do
		case {
			section = "13.1", name = key .. "-" .. word, family = "digest", clauses = "6.2.1 #1 #2 #3",
			what = ("%s=%s is answered with %s."):format(key, row[1], row[2]),
			run = function(t)
				local r = t:connect():propose { key .. "=" .. row[1] }
				if row[2] == "Reject" and (not r or r.status ~= 0) then return end
				if not r then fail("no answer") end
				if r.status ~= 0 then fail("the login ends with status %04xh", r.status) end
				equal(r.keys[key], row[2], key)
			end,
		}
	end
	case {
		section = "13.1", name = key .. "-crc32c", clauses = "13.1 #1", family = "crc32c",
		what = key .. "=CRC32C alone is agreed to: every implementation has CRC32C.",
		run = function(t)
			equal(t:connect():answer_to({ key .. "=CRC32C" })[key], "CRC32C", key)
		end,
	}
end

case {
	section = "13.23", name = "task-reporting", clauses = "6.2.1 #1",
	what = "TaskReporting is answered with one of the values of the list.",
	run = function(t)
		local answer = t:connect():answer_to({ "TaskReporting=RFC3720,ResponseFence,FastAbort" }).TaskReporting
		if not ({ RFC3720 = 1, ResponseFence = 1, FastAbort = 1 })[answer or ""] then fail("TaskReporting=%s", tostring(answer)) end
	end,
}

case {
	section = "13.23", name = "task-reporting-unknown", clauses = "6.2.1 #3",
	what = "A value of TaskReporting that the target does not know is not chosen.",
	run = function(t)
		equal(t:connect():answer_to({ "TaskReporting=Carrier-Pigeon,RFC3720" }).TaskReporting, "RFC3720", "TaskReporting")
	end,
}

-- ---- keys that are unknown, obsolete or of the other end ----

for word, key in pairs { private = "X-org.example.check=1", plain = "NoSuchKey=1", extension = "X#NoSuchKey=1" } do
	case {
		section = "6.2", name = "unknown-" .. word, family = "unknown", clauses = "6.2 #6",
		what = "The unknown key " .. key .. " is answered with NotUnderstood.",
		why = "New keys can be added to the protocol only because old implementations say so.",
		run = function(t)
			local name = key:match("^[^=]+")
			equal(t:connect():answer_to({ key })[name], "NotUnderstood", name)
		end,
	}
end

for _, key in ipairs { "IFMarker=Yes", "OFMarker=Yes" } do
	local name = key:match("^%w+")
	case {
		section = "13.25", name = name, family = "marker", clauses = "13.25",
		what = name .. " is obsolete; it is answered with Reject or No, and not with NotUnderstood.",
		run = function(t)
			local answer = t:connect():answer_to({ key })[name]
			if answer ~= "Reject" and answer ~= "No" then fail("%s=%s", name, tostring(answer)) end
		end,
	}
end

for _, key in ipairs { "IFMarkInt=2048~8192", "OFMarkInt=2048~8192" } do
	local name = key:match("^%w+")
	case {
		section = "13.25", name = name, family = "marker-interval", clauses = "13.25",
		what = name .. " is obsolete; it is answered with Reject.",
		run = function(t)
			equal(t:connect():answer_to({ key })[name], "Reject", name)
		end,
	}
end

for _, key in ipairs { "TargetPortalGroupTag=7", "TargetAddress=127.0.0.1:3260,1", "TargetAlias=mine" } do
	local name = key:match("^%w+")
	case {
		section = "13", name = "of-the-target-" .. name, family = "of-the-target", level = "SHOULD",
		what = name .. " is a key of the target; an initiator that sends it is refused or rejected.",
		run = function(t)
			local r = t:connect():propose { key }
			if not r or r.status ~= 0 then return end
			local answer = r.keys[name]
			if name == "TargetPortalGroupTag" and answer == "7" or answer == nil then fail("%s=%s: the target takes the key", name, tostring(answer)) end
		end,
	}
end

case {
	section = "13.3", name = "SendTargets-in-the-login", level = "SHOULD",
	what = "SendTargets is a key of the full feature phase; in the login it is refused or rejected.",
	run = function(t)
		local r = t:connect():propose { "SendTargets=" }
		if r and r.status == 0 and r.keys.TargetName then fail("the target lists its targets in the login") end
	end,
}

case {
	section = "13.14", name = "first-burst-above-max-burst", clauses = "13.14",
	what = "FirstBurstLength is not above MaxBurstLength in what the target answers.",
	run = function(t)
		local r = t:connect():propose { "MaxBurstLength=4096", "FirstBurstLength=8192", "InitialR2T=No", "ImmediateData=Yes" }
		if not r or r.status ~= 0 or r.keys.FirstBurstLength == "Reject" then return end
		local first, max = number(r.keys.FirstBurstLength), number(r.keys.MaxBurstLength) or 4096
		if first and first > max then fail("FirstBurstLength=%d, MaxBurstLength=%d", first, max) end
	end,
}

for word, value in pairs { zero = "0", below = "511", above = "16777216", text = "big", empty = "" } do
	case {
		section = "13.12", name = "MaxRecvDataSegmentLength-bad-" .. word, family = "MaxRecvDataSegmentLength", level = "SHOULD",
		what = ("MaxRecvDataSegmentLength=%s is not admissible: the login is refused, or the key rejected."):format(value),
		run = function(t)
			local r, why = t:connect():propose { "MaxRecvDataSegmentLength=" .. value }
			if why == "timeout" then fail("no answer") end
			if r and r.status == 0 and r.keys.MaxRecvDataSegmentLength ~= "Reject" then fail("the target takes the value") end
		end,
	}
end

case {
	section = "13.12", name = "MaxRecvDataSegmentLength-declared", clauses = "6.2",
	what = "MaxRecvDataSegmentLength of the target is a number from 512 to 16777215.",
	run = function(t)
		local value = t:connect():answer_to(operational()).MaxRecvDataSegmentLength
		local n = number(value or "8192")
		if not n or n < 512 or n > MAX24 then fail("MaxRecvDataSegmentLength=%s", value) end
	end,
}

case {
	section = "6.2", name = "Reject-is-no-proposal", clauses = "6.2 #10",
	what = "Reject as a proposal is a protocol error.", level = "SHOULD",
	run = function(t)
		local r = t:connect():propose { "MaxBurstLength=Reject" }
		if r and r.status == 0 and r.keys.MaxBurstLength ~= "Reject" then fail("MaxBurstLength=%s", tostring(r.keys.MaxBurstLength)) end
	end,
}

for _, key in ipairs { "MaxConnections", "InitialR2T", "ImmediateData", "MaxBurstLength", "FirstBurstLength", "MaxOutstandingR2T",
	"DataPDUInOrder", "DataSequenceInOrder" } do
	case {
		section = "13", name = "irrelevant-" .. key, family = "irrelevant", clauses = "6.2", level = "SHOULD",
		what = key .. " in a discovery session is irrelevant: it is answered with Irrelevant, or as in a normal session.",
		run = function(t)
			local value = key:match("^Max") and "1024" or key == "FirstBurstLength" and "1024" or "Yes"
			local keys = t:connect():answer_to({ key .. "=" .. value }, { "InitiatorName=" .. options.initiator, "SessionType=Discovery" })
			if keys[key] == "NotUnderstood" or keys[key] == "Reject" then fail("%s=%s", key, keys[key]) end
		end,
	}
end

case {
	section = "7.4.1", name = "ErrorRecoveryLevel-of-discovery", clauses = "7.4.1 #1",
	what = "A discovery session answers ErrorRecoveryLevel with 0.",
	run = function(t)
		local keys = t:connect():answer_to({ "ErrorRecoveryLevel=2" }, { "InitiatorName=" .. options.initiator, "SessionType=Discovery" })
		equal(keys.ErrorRecoveryLevel, "0", "ErrorRecoveryLevel")
	end,
}

case {
	section = "6.2", name = "keys-of-the-standard-understood", clauses = "6.2 #8 #11 #12",
	what = "No key of RFC 7143 is answered with NotUnderstood.",
	run = function(t)
		local keys = t:connect():answer_to(operational { TaskReporting = "RFC3720,ResponseFence", iSCSIProtocolLevel = "1", InitiatorAlias = "check" })
		for name, value in pairs(keys) do
			if value == "NotUnderstood" then fail("%s=NotUnderstood", name) end
		end
	end,
}

case {
	section = "13", name = "no-answer-to-declarations", clauses = "6.2",
	what = "A declaration (InitiatorAlias, InitiatorName) is not answered.", level = "SHOULD",
	run = function(t)
		local keys = t:connect():answer_to { "InitiatorAlias=check" }
		for _, name in ipairs { "InitiatorAlias", "InitiatorName", "SessionType" } do
			if keys[name] then fail("%s=%s", name, keys[name]) end
		end
	end,
}

rfc "7144"

for _, level in ipairs { 0, 1, 2, 31 } do
	case {
		section = "7.1.1", name = "iSCSIProtocolLevel-" .. level, family = "level",
		what = ("iSCSIProtocolLevel=%d is answered with a level that is not above it."):format(level),
		run = function(t)
			local r = t:connect():propose { "iSCSIProtocolLevel=" .. level }
			if not r then fail("no answer") end
			if r.status ~= 0 then fail("the login ends with status %04xh", r.status) end
			local answer = r.keys.iSCSIProtocolLevel
			if answer == "NotUnderstood" then unsupported("the target does not know the key") end
			if answer == "Reject" and level == 0 then return end
			local n = number(answer)
			if not n or n > level then fail("iSCSIProtocolLevel=%s", tostring(answer)) end
		end,
	}
end
