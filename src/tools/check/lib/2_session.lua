-- SPDX-License-Identifier: BSD-2-Clause
-- 2_session.lua: text keys, logins, CHAP, SCSI commands of a session in the full feature phase.

SECURITY, OPERATIONAL, FULL_FEATURE = 0, 1, 3

-- ---- text keys ----

-- "A=1\0B=2\0" of { "A=1", "B=2" }
function keys_encode(list)
	return #list == 0 and "" or table.concat(list, "\0") .. "\0"
end

-- { A = "1", B = "2" } of a data segment, and the list of the names
function keys_decode(data)
	local values, names = {}, {}
	for key, value in data:gmatch("([^=%z]+)=([^%z]*)%z") do
		values[key] = value
		names[#names + 1] = key
	end
	return values, names
end

function new_isid()
	return 0x80 << 40 | string.unpack(">I5", engine.random(5))
end

-- The keys that name the two ends; more keys follow.
function names(...)
	return { "InitiatorName=" .. options.initiator, "TargetName=" .. options.target, "SessionType=Normal", ... }
end

-- The same under another initiator name: for wrong passwords, after which a target may refuse the account and the initiator
-- for a while.
function names_of_stranger(...)
	return { "InitiatorName=" .. options.initiator .. "-stranger", "TargetName=" .. options.target, "SessionType=Normal", ... }
end

-- Keys of an operational negotiation that each target can agree to; changes replaces values, false leaves a key out.
function operational(changes)
	local all = { HeaderDigest = "None", DataDigest = "None", ErrorRecoveryLevel = "0", InitialR2T = "Yes", ImmediateData = "Yes",
		MaxBurstLength = "262144", FirstBurstLength = "65536", MaxRecvDataSegmentLength = "65536", MaxOutstandingR2T = "1",
		DefaultTime2Wait = "0", DefaultTime2Retain = "0", DataPDUInOrder = "Yes", DataSequenceInOrder = "Yes", MaxConnections = "1" }
	for k, v in pairs(changes or {}) do all[k] = v end
	local list = {}
	for k, v in pairs(all) do
		if v then list[#list + 1] = k .. "=" .. v end
	end
	table.sort(list)
	return list
end

function join(a, b)
	local all = {}
	for _, v in ipairs(a) do all[#all + 1] = v end
	for _, v in ipairs(b) do all[#all + 1] = v end
	return all
end

-- ---- logins ----

-- Sends a Login Request: stage, next stage (nil: no T) and keys; f has fields that differ from those of a correct request.
function Conn:login_request(csg, nsg, keys, f)
	self.isid = self.isid or new_isid()
	local request = { immediate = true, transit = nsg ~= nil, csg = csg, nsg = nsg or 0, isid = self.isid, tsih = self.tsih or 0,
		cid = self.cid, itt = self.itt, cmdsn = self.cmdsn, expstatsn = self.expstatsn,
		_data = type(keys) == "table" and keys_encode(keys) or keys or "" }
	for k, v in pairs(f or {}) do request[k] = v end
	self:send("login_request", request)
end

-- Receives a Login Response with the status 0; fails for another one. Its keys are in pdu.keys.
function Conn:login_response(fields)
	local r = self:expect("login_response", fields)
	r.keys, r.names = keys_decode(r._data)
	if not (fields and fields.status) and r.status ~= 0 then fail("the login ends with status %04xh", r.status) end
	return r
end

-- Passes if the target refuses the login: a status of one of these classes or values (0x02, 0x0201), or, where or_closed is
-- set, the end of the connection. RFC 7143 §11.13.5: the target closes after the status.
function Conn:expect_refused(statuses, or_closed)
	local r, why = self:recv()
	if not r and why == "closed" and or_closed then return end
	if not r then fail("expected a refusal, but %s", why == "closed" and "the peer closed the connection without a status" or "nothing came") end
	if r._kind == "reject" and or_closed then return end
	if r._kind ~= "login_response" then fail("expected a Login Response, not %s", r._kind) end
	if r.status == 0 then fail("the target accepts the login request") end
	for _, s in ipairs(type(statuses) == "table" and statuses or { statuses }) do
		if r.status == s or r.status >> 8 == s then return r end
	end
	fail("the status is %04xh", r.status)
end

-- ---- CHAP (RFC 7143 §12.1.3) ----

local HASHES = { ["5"] = "MD5", ["6"] = "SHA1", ["7"] = "SHA256", ["8"] = "SHA3-256" }

-- The bytes of "0x12AB" or "0b..." (RFC 7143 §6.1).
function binary(text)
	local kind, digits = (text or ""):match("^0([xXbB])(.*)$")
	if not kind then fail("%s is not a binary value", tostring(text)) end
	if kind == "x" or kind == "X" then
		if #digits % 2 == 1 then digits = "0" .. digits end
		return (digits:gsub("%x%x", function(h) return string.char(tonumber(h, 16)) end))
	end
	local alphabet, bits, n, out = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", 0, 0, {}
	for ch in digits:gmatch("[^=]") do
		bits, n = bits << 6 | (alphabet:find(ch, 1, true) or 1) - 1, n + 6
		if n >= 8 then
			n = n - 8
			out[#out + 1] = string.char(bits >> n & 0xff)
			bits = bits & (1 << n) - 1
		end
	end
	return table.concat(out)
end

function hex(bytes)
	return "0x" .. bytes:gsub(".", function(ch) return ("%02x"):format(ch:byte()) end)
end

-- The value of CHAP_R.
function chap_response(algorithm, id, secret, challenge)
	return hex(engine.hash(HASHES[algorithm], string.char(tonumber(id)) .. secret .. challenge))
end

-- Sends the first requests of a login with CHAP; first replaces the names. Returns the keys of the challenge. A target may answer
-- slowly after many failures, to slow down who guesses passwords.
function Conn:chap_challenge(first)
	self.patience = math.max(60, options.timeout)
	engine.extend(90)
	self:login_request(SECURITY, nil, join(first or names(), { "AuthMethod=CHAP" }))
	local r = self:login_response()
	equal(r.keys.AuthMethod, "CHAP", "AuthMethod")
	self:login_request(SECURITY, nil, { "CHAP_A=5" })
	return self:login_response().keys
end

-- Sends name and response for the challenge; T is set.
function Conn:chap_answer(k, nsg, password, more)
	self:login_request(SECURITY, nsg or OPERATIONAL, join({ "CHAP_N=" .. options.user, "CHAP_R=" ..
		chap_response(k.CHAP_A, k.CHAP_I, password or options.password, binary(k.CHAP_C)) }, more or {}))
end

-- The security stage, where the URL has a password; returns the keys of the names if they are not sent yet.
function Conn:authenticate(first)
	if not options.password then return first end
	local discovery = table.concat(first):find("SessionType=Discovery")
	self:login_request(SECURITY, nil, join(first, { discovery and "AuthMethod=CHAP,None" or "AuthMethod=CHAP" }))
	local r = self:login_response()
	if discovery and r.keys.AuthMethod == "None" then
		self:login_request(SECURITY, OPERATIONAL, {})
		self:login_response { transit = true, nsg = OPERATIONAL }
		return {}
	end
	if r.keys.AuthMethod ~= "CHAP" then fail("the target does not choose CHAP: AuthMethod is %s", tostring(r.keys.AuthMethod)) end
	self:login_request(SECURITY, nil, { "CHAP_A=5" })
	self:chap_answer(self:login_response().keys)
	self:login_response { transit = true, nsg = OPERATIONAL }
	return {}
end

-- Sends the first request of a login that goes on, and receives the response.
function Conn:begin_login()
	if options.password then
		self:login_request(SECURITY, nil, names("AuthMethod=CHAP"))
	else
		self:login_request(OPERATIONAL, nil, names())
	end
	return self:login_response()
end

-- Sends keys in the operational stage, with T (after the security stage where the URL has a password). Returns the response,
-- whatever its status, with its keys; or nil and "closed" or "timeout". first replaces the names.
function Conn:propose(keys, first)
	self:login_request(OPERATIONAL, FULL_FEATURE, join(self:authenticate(first or names()), keys))
	local r, why = self:recv()
	if not r then return nil, why end
	if r._kind ~= "login_response" then fail("expected a Login Response, not %s", r._kind) end
	r.keys, r.names = keys_decode(r._data)
	return r
end

-- Proposes keys that each target must be able to answer; returns the keys of the answer.
function Conn:answer_to(keys, first)
	local r, why = self:propose(keys, first)
	if not r then fail("the target does not answer: %s", why) end
	if r.status ~= 0 then fail("the login ends with status %04xh", r.status) end
	return r.keys, r
end

-- Logs in with these keys; returns the final response, with all keys of the target in r.keys.
function Conn:login(first, keys)
	local all, request = {}, join(self:authenticate(first), keys)
	for _ = 1, 10 do
		self:login_request(OPERATIONAL, FULL_FEATURE, request)
		local r = self:login_response()
		for k, v in pairs(r.keys) do all[k] = v end
		if r.transit then
			equal(r.nsg, FULL_FEATURE, "NSG")
			r.keys, self.keys, self.tsih, self.number_of_login = all, all, r.tsih, r.itt
			self.max_data = tonumber(all.MaxRecvDataSegmentLength or 8192)
			self.header_digest = all.HeaderDigest == "CRC32C"
			self.data_digest = all.DataDigest == "CRC32C"
			return r
		end
		request = {}
	end
	fail("the login does not end")
end

-- A session in the full feature phase; changes is for operational().
function Test:session(changes)
	local c = self:connect()
	local given = operational(changes)
	c:login(names(), given)
	local offered = keys_decode(keys_encode(given))
	c.result = setmetatable(c.keys, { __index = offered })
	return c
end

-- A session with Yes/No or a number for a key that the target must agree to; not supported otherwise.
function Test:session_with(key, value, more)
	local changes = more or {}
	changes[key] = value
	local c = self:session(changes)
	if c.result[key] ~= value then unsupported("%s=%s: the target answers %s", key, value, tostring(c.result[key])) end
	return c
end

-- A discovery session.
function Test:discovery()
	local c = self:connect()
	c:login({ "InitiatorName=" .. options.initiator, "SessionType=Discovery" }, { "HeaderDigest=None", "DataDigest=None",
		"MaxRecvDataSegmentLength=65536", "DefaultTime2Wait=0", "DefaultTime2Retain=0" })
	return c
end

-- ---- requests of the full feature phase ----

-- Sends a request with the next tag and CmdSN; f has the other fields. Returns the tag.
function Conn:request(kind, f)
	local r = { final = true, itt = self.itt + 1, cmdsn = self.cmdsn, expstatsn = self.expstatsn }
	for k, v in pairs(f) do r[k] = v end
	if not f.itt then self.itt = self.itt + 1 end
	if not r.immediate and not f.cmdsn then self.cmdsn = (self.cmdsn + 1) & 0xffffffff end
	self:send(kind, r)
	return r.itt
end

function lun_field()
	return options.lun < 256 and options.lun << 48 or (0x4000 | options.lun) << 48
end

-- ---- CDBs ----

function inquiry(length) return string.pack(">BBBI2B", 0x12, 0, 0, length, 0), length end
function test_unit_ready() return ("\0"):rep(6), 0 end
function read_capacity(length) return string.pack(">BBI4I4", 0x25, 0, 0, 0), length or 8 end
function report_luns(length) return string.pack(">BBI4I4BB", 0xa0, 0, 0, length, 0, 0), length end
function request_sense(length) return string.pack(">BBBBBB", 0x03, 0, 0, 0, length, 0), length end
function read10(lba, blocks) return string.pack(">BBI4BI2B", 0x28, 0, lba, 0, blocks, 0) end
function write10(lba, blocks) return string.pack(">BBI4BI2B", 0x2a, 0, lba, 0, blocks, 0) end

-- Sends a SCSI command: cdb, read or write with the expected length, data (immediate), attr, more fields.
function Conn:command(f)
	local r = { attr = 1, lun = lun_field(), read = f.read ~= nil, write = f.write ~= nil, edtl = f.read or f.write or 0, _data = f.data }
	for k, v in pairs(f) do
		if k ~= "read" and k ~= "write" and k ~= "data" then r[k] = v end
	end
	return self:request("scsi_command", r)
end

-- Sends data of a write: len bytes of data from offset on, as Data-Outs of at most max bytes.
function Conn:data_out(itt, ttt, data, offset, f)
	local at, sn, max = 0, 0, f and f.max or self.max_data
	while at < #data do
		local piece = data:sub(at + 1, at + max)
		self:send("data_out", { final = at + #piece == #data, lun = lun_field(), itt = itt, ttt = ttt, expstatsn = self.expstatsn,
			datasn = sn, offset = offset + at, _data = piece })
		at, sn = at + #piece, sn + 1
	end
end

-- Receives all PDUs of a command up to its status; answers R2Ts from data. Returns { status, data, sense, response, r2ts,
-- data_ins, residual, overflow, underflow }.
function Conn:finish(itt, data)
	local got, r = {}, { r2ts = {}, data_ins = {} }
	for _ = 1, 20000 do
		local pdu, why = self:recv()
		if not pdu then fail("expected the end of a command, but %s", why == "closed" and "the peer closed the connection" or "nothing came") end
		if pdu.itt ~= itt or pdu._kind == "reject" then
			fail("expected the end of a command, not %s%s", pdu._kind, pdu.reason and (" with reason %d"):format(pdu.reason) or "")
		end
		if pdu._kind == "data_in" then
			r.data_ins[#r.data_ins + 1] = pdu
			got[#got + 1] = pdu._data
		elseif pdu._kind == "r2t" then
			r.r2ts[#r.r2ts + 1] = pdu
			if not data then fail("an R2T came for a command without data") end
			self:data_out(itt, pdu.ttt, data:sub(pdu.offset + 1, pdu.offset + pdu.length), pdu.offset)
		elseif pdu._kind ~= "scsi_response" then
			fail("expected the end of a command, not %s", pdu._kind)
		end
		if pdu._kind == "scsi_response" or pdu.has_status then
			r.response, r.status, r.residual = pdu, pdu.status, pdu.residual
			r.overflow, r.underflow = pdu.overflow, pdu.underflow
			r.data = table.concat(got)
			if pdu._kind == "scsi_response" and #pdu._data >= 2 then
				r.sense = pdu._data:sub(3, 2 + string.unpack(">I2", pdu._data))
			end
			return r
		end
	end
	fail("the command does not end")
end

-- Sends a command and receives its end.
function Conn:scsi(f, all)
	return self:finish(self:command(f), all or f.data)
end

-- The sense key of sense data in both formats; 0 without sense data.
function sense_key(r)
	if not r.sense or #r.sense < 3 then return 0 end
	return r.sense:byte(r.sense:byte(1) & 0x7f >= 0x72 and 2 or 3) & 15
end

-- Sends TEST UNIT READY until the unit has reported its unit attentions.
function Conn:ready()
	for _ = 1, 10 do
		local r = self:scsi { cdb = (test_unit_ready()) }
		if r.status == 0 then return self end
		if r.status ~= 2 or sense_key(r) ~= 6 then skip("the unit is not ready: status %02xh, sense key %x", r.status, sense_key(r)) end
	end
	skip("the unit has no end of unit attentions")
end

-- A session whose unit is ready; its block size is in c.block.
function Test:unit(changes)
	local c = self:session(changes):ready()
	local cdb, length = read_capacity()
	local r = c:scsi { cdb = cdb, read = length }
	if r.status ~= 0 then skip("READ CAPACITY (10) ends with status %02xh", r.status) end
	c.last, c.block = string.unpack(">I4I4", r.data)
	return c
end

local slots = 0 -- given to destructive cases, 128 KiB each, so that cases that run together write to different blocks

-- The blocks that destructive cases write to are after the first MiB. Skips where the unit holds data at its start.
function Test:scratch(changes)
	local c = self:unit(changes)
	local n = 131072 // c.block
	if c.last < (4 << 20) // c.block then skip("the unit is smaller than 4 MiB") end
	if not options.force then
		local r = c:scsi { cdb = read10(0, n), read = n * c.block }
		if r.data:find("[^%z]") then skip("the first 128 KiB of the unit are not zero, so it may hold data: give --force") end
	end
	local first, slot = (1 << 20) // c.block, n
	c.lba = first + slots % ((c.last + 1 - first) // slot) * slot
	slots = slots + 1
	return c
end

-- A ping that shows that the session works still.
function Conn:ping(text)
	local itt = self:request("nop_out", { ttt = NO_TAG, _data = text or "ping" })
	local r = self:expect("nop_in", { itt = itt })
	equal(r._data, text or "ping", "the data of the NOP-In")
	return r
end

-- Logs out, and waits for the end of the connection.
function Conn:logout(reason)
	self:request("logout_request", { reason = reason or 0, cid = self.cid, immediate = true })
	return self:expect("logout_response")
end

-- Text negotiation: sends keys; returns the response and its keys.
function Conn:text(keys, f)
	local r = { ttt = NO_TAG, _data = type(keys) == "table" and keys_encode(keys) or keys }
	for k, v in pairs(f or {}) do r[k] = v end
	local itt = self:request("text_request", r)
	local response = self:expect("text_response", { itt = itt })
	response.keys, response.names = keys_decode(response._data)
	return response
end
