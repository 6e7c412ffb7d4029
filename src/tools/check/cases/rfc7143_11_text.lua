-- SPDX-License-Identifier: BSD-2-Clause
-- rfc7143_11_text.lua: RFC 7143 §4.3, §6.4, §11.10, §11.11, §13.3, appendix C: discovery sessions and text negotiations.
rfc "7143"

case {
	section = "13.3", name = "send-targets", clauses = "4.3 #1",
	what = "SendTargets=All in a discovery session lists the target of the URL, each target with its addresses after its name.",
	run = function(t)
		local r = t:discovery():text { "SendTargets=All" }
		local found, name = false, nil
		for key, value in r._data:gmatch("([^=%z]+)=([^%z]*)%z") do
			if key == "TargetName" then
				name = value
				found = found or value == options.target
			elseif key == "TargetAddress" then
				if not name then fail("a TargetAddress comes before any TargetName") end
				if not value:find(",%d+$") then fail("TargetAddress=%s has no portal group tag (§13.8)", value) end
			else
				fail("the list has %s", key)
			end
		end
		if not found then fail("the list does not have %s", options.target) end
	end,
}

case {
	section = "13.3", name = "send-targets-of-one", clauses = "4.3 #1",
	what = "SendTargets with the name of a target lists this target only.",
	run = function(t)
		local r = t:discovery():text { "SendTargets=" .. options.target }
		equal(r.keys.TargetName, options.target, "TargetName")
		local count = select(2, r._data:gsub("TargetName=", ""))
		equal(count, 1, "the number of targets")
	end,
}

case {
	section = "13.3", name = "send-targets-of-none", level = "SHOULD",
	what = "SendTargets with a name that does not exist has an empty answer, or Reject.",
	run = function(t)
		local r = t:discovery():text { "SendTargets=iqn.2026-01.org.example:no-such-target" }
		if r.keys.TargetName then fail("the list has %s", r.keys.TargetName) end
	end,
}

case {
	section = "13.3", name = "send-targets-empty-in-normal", level = "SHOULD",
	what = "An empty SendTargets in a normal session lists the target of the session.",
	run = function(t)
		local r = t:session():text { "SendTargets=" }
		equal(r.keys.TargetName, options.target, "TargetName")
	end,
}

for kind, f in pairs { scsi_command = { cdb = ("\0"):rep(6), attr = 1 }, nop_out = { ttt = NO_TAG, _data = "ping" }, task_request = { func = 2 } } do
	case {
		section = "4.3", name = "discovery-" .. kind, family = "discovery-", clauses = "4.3 #2",
		what = "A discovery session rejects a " .. kind .. ".",
		run = function(t)
			local c = t:discovery()
			local r = {}
			for k, v in pairs(f) do r[k] = v end
			c:request(kind, r)
			local pdu, why = c:recv()
			if why == "timeout" then fail("no answer") end
			if pdu and pdu._kind ~= "reject" and pdu._kind ~= "async" and not (pdu._kind == "task_response" and pdu.response ~= 0) then
				fail("the target answers with %s", pdu._kind)
			end
		end,
	}
end

case {
	section = "4.3", name = "discovery-other-key", clauses = "4.3 #1 #2", level = "SHOULD",
	what = "A Text Request without SendTargets in a discovery session gets no list of targets.",
	run = function(t)
		local c = t:discovery()
		c:request("text_request", { ttt = NO_TAG, _data = keys_encode { "X-org.example.check=1" } })
		local pdu = c:recv()
		if pdu and pdu._kind == "text_response" and keys_decode(pdu._data).TargetName then fail("the target lists its targets") end
	end,
}

case {
	section = "4.3", name = "discovery-logout", clauses = "4.3 #1",
	what = "A discovery session ends by a Logout with the reason 0.",
	run = function(t)
		local c = t:discovery()
		equal(c:logout(0).response, 0, "the response to the Logout")
	end,
}

case {
	section = "6.4", name = "unknown-key", clauses = "6.2 #6, 11.11.1 #2, 11.11.4 #2",
	what = "An unknown key in a Text Request is answered with NotUnderstood.",
	run = function(t)
		local r = t:session():text { "X-org.example.check=1" }
		equal(r.keys["X-org.example.check"], "NotUnderstood", "the answer")
		equal(r.final, true, "F of the Text Response")
		equal(r.ttt, NO_TAG, "the Target Transfer Tag of a final response (§11.11.1)")
	end,
}

case {
	section = "6.4", name = "empty", clauses = "11.11.1 #1 #2",
	what = "An empty Text Request is answered with an empty final response.",
	run = function(t)
		local r = t:session():text {}
		equal(r.final, true, "F")
		equal(#r._data, 0, "the length of the data")
	end,
}

case {
	section = "6.4", name = "twice", clauses = "6.4 #4",
	what = "A key that comes twice in a negotiation is rejected with Protocol Error (04h).",
	run = function(t)
		local c = t:session()
		c:request("text_request", { ttt = NO_TAG, _data = keys_encode { "MaxRecvDataSegmentLength=4096", "MaxRecvDataSegmentLength=8192" } })
		c:expect_reject(0x04)
		c:ping()
	end,
}

case {
	section = "11.10.2", name = "continuation", clauses = "6.2 #2, 6.4 #3, 11.11.1 #3, 11.11.4 #1",
	what = "A Text Request with C is answered with an empty response without F and with a Target Transfer Tag; the keys are one text.",
	run = function(t)
		local c = t:session()
		local keys = keys_encode { "X-org.example.first=1", "X-org.example.second=2" }
		local itt = c:request("text_request", { final = false, cont = true, ttt = NO_TAG, _data = keys:sub(1, 30) })
		local r = c:expect("text_response", { itt = itt, final = false })
		equal(#r._data, 0, "the length of the data of the response to C")
		if r.ttt == NO_TAG then fail("the response without F has no Target Transfer Tag") end
		c:request("text_request", { itt = itt, ttt = r.ttt, lun = r.lun, _data = keys:sub(31) })
		r = c:expect("text_response", { itt = itt })
		local answers = keys_decode(r._data)
		equal(answers["X-org.example.first"], "NotUnderstood", "the answer to the first key")
		equal(answers["X-org.example.second"], "NotUnderstood", "the answer to the second key")
	end,
}

case {
	section = "11.10.2", name = "c-with-f", clauses = "11.10.2 #1",
	what = "A Text Request with C and F is rejected.", level = "SHOULD",
	run = function(t)
		local c = t:session()
		c:request("text_request", { final = true, cont = true, ttt = NO_TAG, _data = "X-org.example.a=1\0" })
		c:expect_reject({ 0x04, 0x09 }, true)
	end,
}

case {
	section = "11.10.4", name = "unknown-ttt", clauses = "11.10.4",
	what = "A Text Request with a Target Transfer Tag that the target has not given is rejected.", level = "SHOULD",
	run = function(t)
		local c = t:session()
		c:request("text_request", { ttt = 0x1234, _data = keys_encode { "X-org.example.a=1" } })
		c:expect_reject({ 0x04, 0x09, 0x0b, 0x0a }, true)
	end,
}

for _, key in ipairs { "MaxConnections=1", "InitialR2T=Yes", "ImmediateData=No", "MaxBurstLength=4096", "FirstBurstLength=4096",
	"DefaultTime2Wait=1", "DefaultTime2Retain=1", "MaxOutstandingR2T=1", "DataPDUInOrder=Yes", "DataSequenceInOrder=Yes",
	"ErrorRecoveryLevel=0", "HeaderDigest=None", "DataDigest=None", "InitiatorName=iqn.2026-01.org.example:other",
	"TargetName=iqn.2026-01.org.example:other", "SessionType=Discovery", "AuthMethod=None", "TaskReporting=RFC3720" } do
	local name = key:match("^%w+")
	case {
		section = "13", name = "late-" .. name, family = "late-", clauses = "13 #1",
		what = name .. " is a key of the login: in the full feature phase it is rejected.",
		why = "A session whose values change in its middle has two ends with different ideas of it.",
		run = function(t)
			local c = t:session()
			c:request("text_request", { ttt = NO_TAG, _data = keys_encode { key } })
			local pdu, why = c:recv()
			if why == "timeout" then fail("no answer") end
			if not pdu or pdu._kind == "reject" then return end
			local answer = keys_decode(pdu._data)[name]
			if answer ~= "Reject" then fail("the target answers %s=%s", name, tostring(answer)) end
		end,
	}
end

case {
	section = "13.12", name = "late-MaxRecvDataSegmentLength", clauses = "13.12",
	what = "MaxRecvDataSegmentLength can be declared anew in the full feature phase, and Data-Ins keep to it.",
	run = function(t)
		local c = t:unit()
		c:text { "MaxRecvDataSegmentLength=512" }
		local n = math.max(4096 // c.block, 1)
		for _, pdu in ipairs(c:scsi { cdb = read10(0, n), read = n * c.block }.data_ins) do
			if #pdu._data > 512 then fail("a Data-In has %d bytes", #pdu._data) end
		end
	end,
}

case {
	section = "6.1", name = "text-without-equals", level = "SHOULD",
	what = "A Text Request whose data are not key=value pairs is rejected.",
	run = function(t)
		local c = t:session()
		c:request("text_request", { ttt = NO_TAG, _data = "nonsense\0" })
		c:expect_reject({ 0x04, 0x09 }, true)
	end,
}
