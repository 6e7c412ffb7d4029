-- SPDX-License-Identifier: BSD-2-Clause
-- 1_core.lua: cases and their verdicts, connections, PDUs. docs/check/writing.md describes what a case uses.

all_cases = {}
local current_rfc
local next_of = next

-- As Lua has it, but in the order of the keys, so that each run has its cases and keys in the same order.
function pairs(t)
	local keys = {}
	for k in next_of, t do keys[#keys + 1] = k end
	table.sort(keys, function(a, b)
		if type(a) == type(b) then return a < b end
		return type(a) == "number"
	end)
	local i = 0
	return function()
		i = i + 1
		if keys[i] ~= nil then return keys[i], t[keys[i]] end
	end
end

-- Names the RFC of the cases that follow in the file.
function rfc(number)
	current_rfc = number
end

-- The text of the case that has this text, in the file that is being loaded: from "case {" to the "}" below it.
local function source_of(text)
	local lines, mine, indent = {}, false, nil
	for line in (case_file .. "\n"):gmatch("(.-)\n") do
		local tabs = line:match("^(%s*)case {$")
		if tabs then lines, mine, indent = {}, false, tabs end
		lines[#lines + 1] = line
		mine = mine or line:find(text, 1, true)
		if mine and indent and line == indent .. "}" then return table.concat(lines, "\n") end
	end
	return ""
end

-- Adds a case: section, name, what and run are required; level is MUST unless given; clauses are those of
-- tests/arch/spec/rfcN.txt ("6.3 #4"); family names the cases that a loop makes.
function case(c)
	for _, key in ipairs { "section", "name", "what", "run" } do
		if not c[key] then error("case " .. tostring(c.name) .. ": no " .. key, 2) end
	end
	c.level = c.level or "MUST"
	if not ({ MUST = 1, SHOULD = 1, MAY = 1 })[c.level] then error("case " .. c.name .. ": level " .. c.level, 2) end
	c.id = current_rfc .. "-" .. c.section .. "-" .. c.name
	for _, other in ipairs(all_cases) do
		if other.id == c.id then error("two cases are called " .. c.id, 2) end
	end
	c.clause = "RFC " .. current_rfc .. " " .. (c.clauses or c.section)
	c.source = source_of(c.family and 'family = "' .. c.family .. '"' or 'name = "' .. c.name .. '"')
	all_cases[#all_cases + 1] = c
end

-- ---- random choices that --seed repeats ----

function set_seed(seed)
	math.randomseed(seed)
end

-- ---- verdicts ----

local function verdict(word, reason)
	error({ verdict = word, reason = reason }, 0)
end

-- Ends the case: the peer does not do what the clause says.
function fail(fmt, ...)
	verdict("FAIL", fmt:format(...))
end

-- Ends the case: the peer does not have what the case needs.
function unsupported(fmt, ...)
	verdict("NOT SUPPORTED", fmt:format(...))
end

function skip(fmt, ...)
	verdict("SKIPPED", fmt:format(...))
end

-- Fails unless the two are equal; what describes the value.
function equal(got, want, what)
	if got ~= want then
		fail("%s is %s, not %s", what, tostring(got), tostring(want))
	end
end

-- ---- the object that a case gets as its argument ----

Test = {}
Test.__index = Test

function Test:note(text)
	local log = self.log
	if #log < 400 then log[#log + 1] = text end
end

-- Runs f at the end of the case, whatever happens.
function Test:defer(f)
	table.insert(self.deferred, 1, f)
end

-- Waits for a socket or for some seconds; ends the case after its deadline.
local function wait(sock, events, seconds)
	local event = engine.wait(sock, events, seconds)
	if event == "deadline" then fail("no end before the deadline of the case: the peer does not answer") end
	if event == "interrupted" then skip("interrupted") end
	return event == "ready"
end

function sleep(seconds)
	wait(nil, "r", seconds)
end

local function why_of(err)
	if type(err) == "table" and err.verdict then return err.verdict, err.reason end
	return "BROKEN", tostring(err)
end

local function needs_of(c)
	if c.destructive and not options.destructive then return "writes to the unit or disturbs other sessions: give --destructive" end
	if c.chap and not options.password then return "needs a user and a password in the URL" end
	if c.open and options.password then return "needs a target without authentication" end
end

-- Runs a case; the engine calls it. Returns the verdict, its reason, and the conversation.
function run_case(c)
	local t = setmetatable({ case = c, log = {}, deferred = {}, conns = 0 }, Test)
	local why = needs_of(c)
	if why then return "SKIPPED", why, "" end
	if c.deadline then engine.extend(c.deadline) end
	local ok, err = pcall(c.run, t)
	local word, reason = "PASS", ""
	if not ok then word, reason = why_of(err) end
	for _, f in ipairs(t.deferred) do pcall(f) end
	if word == "FAIL" and c.level ~= "MUST" and not (options.strict and c.level == "SHOULD") then word = "WARN" end
	return word, reason, table.concat(t.log, "\n")
end

-- ---- connections ----

Conn = {}
Conn.__index = Conn

NO_TAG = 0xffffffff

-- Connects to the target.
function Test:connect()
	local sock = engine.connect(options.host, options.port)
	self.conns = self.conns + 1
	local c = setmetatable({ t = self, sock = sock, buffer = "", number = self.conns, cmdsn = 1, expstatsn = 0,
		itt = 1, cid = 0, pings = true }, Conn)
	if not wait(sock, "w", options.timeout) then fail("no connection within %d s", options.timeout) end
	local failure = sock:failure()
	if failure then fail("no connection: %s", failure) end
	return c
end

function Conn:close()
	self.sock:close()
end

-- Sends bytes as they are.
function Conn:send_bytes(bytes)
	local at, last = 1, engine.now() + options.timeout
	while at <= #bytes do
		local n = self.sock:send(bytes, at)
		if not n then
			self.gone = true -- the peer has closed: what it sent before can still be read
			return
		end
		at = at + n
		if n == 0 and not wait(self.sock, "w", last - engine.now()) then
			fail("the peer takes no bytes for %d s", options.timeout)
		end
	end
end

-- Reads n bytes; nil and "closed" or "timeout".
function Conn:read_bytes(n, seconds)
	local last = engine.now() + (seconds or self.patience or options.timeout)
	while #self.buffer < n do
		local more = self.sock:recv()
		if more == false then return nil, "closed" end
		if more then
			self.buffer = self.buffer .. more
		elseif engine.now() >= last or not wait(self.sock, "r", math.max(last - engine.now(), 0)) then
			return nil, "timeout"
		end
	end
	local bytes = self.buffer:sub(1, n)
	self.buffer = self.buffer:sub(n + 1)
	return bytes
end

local function pad(data)
	return data .. ("\0"):rep(-#data % 4)
end

-- What the log has of a PDU: the fields that are not 0.
local SHOWN = { "immediate", "final", "transit", "cont", "csg", "nsg", "read", "write", "func", "reason", "response", "status", "event",
	"has_status", "overflow", "underflow", "residual", "itt", "ttt", "rtt", "cmdsn", "statsn", "expstatsn", "expcmdsn", "maxcmdsn",
	"datasn", "r2tsn", "offset", "length", "edtl", "tsih", "type", "begrun", "runlength", "refcmdsn" }
local HEX = { itt = 1, ttt = 1, rtt = 1 }

local function show(kind, f, data)
	local parts = { kind }
	for _, name in ipairs(SHOWN) do
		local v = f[name]
		if v == true then
			parts[#parts + 1] = name
		elseif v and v ~= 0 then
			parts[#parts + 1] = (HEX[name] and "%s=%x" or "%s=%d"):format(name, v)
		end
	end
	if #data > 0 then
		parts[#parts + 1] = ("%d bytes"):format(#data)
		if kind:find("login") or kind:find("text") then
			parts[#parts + 1] = data:sub(1, 600):gsub("%z+", " ")
		end
	end
	return table.concat(parts, " ")
end

-- Sends a PDU with these fields, and nothing else: _data and _ahs are its segments, the lengths follow from them unless
-- they are given; _bad_header_digest and _bad_data_digest.
function Conn:send(kind, f)
	local data, ahs = f._data or "", f._ahs or ""
	f.dsl = f.dsl or #data
	f.ahslen = f.ahslen or #ahs // 4
	local head = engine.pdu_encode(kind, f) .. ahs
	if self.header_digest then
		head = head .. string.pack("<I4", engine.crc32c(head) ~ (f._bad_header_digest and 1 or 0))
	end
	local body = pad(data)
	if self.data_digest and #data > 0 then
		body = body .. string.pack("<I4", engine.crc32c(body) ~ (f._bad_data_digest and 1 or 0))
	end
	self.t:note(("%d --> %s"):format(self.number, show(kind, f, data)))
	self:send_bytes(head .. body)
end

-- StatSN advances with each PDU that carries a status or an answer (RFC 7143 §4.2.2.2).
local function advances(pdu)
	if pdu._kind == "r2t" or pdu._kind == "data_in" and not pdu.has_status then return false end
	if pdu._kind == "nop_in" and pdu.itt == NO_TAG then return false end
	return pdu.statsn ~= nil
end

local function read_pdu(self, seconds)
	local bhs, why = self:read_bytes(48, seconds)
	if not bhs then return nil, why end
	local pdu = engine.pdu_decode(bhs)
	pdu._bhs = bhs
	pdu._ahs = self:read_bytes(pdu.ahslen * 4)
	if self.header_digest then
		local digest = self:read_bytes(4)
		if digest and string.unpack("<I4", digest) ~= engine.crc32c(bhs .. (pdu._ahs or "")) then fail("a wrong header digest came") end
	end
	local data = self:read_bytes(pdu.dsl + -pdu.dsl % 4)
	if not data then
		fail("the stream ended, or stopped, within a PDU (%s)", pdu._kind)
	end
	if self.data_digest and pdu.dsl > 0 then
		local digest = self:read_bytes(4)
		if digest and string.unpack("<I4", digest) ~= engine.crc32c(data) then fail("a wrong data digest came") end
	end
	pdu._padding = data:sub(pdu.dsl + 1)
	pdu._data = data:sub(1, pdu.dsl)
	return pdu
end

-- Receives a PDU; nil and "closed" or "timeout". Answers pings of the target (NOP-In with a tag), unless c.pings is false.
function Conn:recv(seconds)
	while true do
		local pdu, why = read_pdu(self, seconds)
		if not pdu then
			self.t:note(("%d <-- (%s)"):format(self.number, why))
			return nil, why
		end
		self.t:note(("%d <-- %s"):format(self.number, show(pdu._kind, pdu, pdu._data)))
		if advances(pdu) then self.expstatsn = (pdu.statsn + 1) & NO_TAG end
		if pdu._kind == "nop_in" and pdu.itt == NO_TAG and self.pings then
			if pdu.ttt ~= NO_TAG then
				self:send("nop_out", { immediate = true, final = true, itt = NO_TAG, ttt = pdu.ttt, lun = pdu.lun, cmdsn = self.cmdsn,
					expstatsn = self.expstatsn, _data = pdu._data })
			end
		else
			return pdu
		end
	end
end

-- Receives a PDU of this kind, or fails.
function Conn:expect(kind, fields)
	local pdu, why = self:recv()
	if not pdu then fail("expected %s, but %s", kind, why == "closed" and "the peer closed the connection" or "nothing came") end
	if pdu._kind ~= kind then
		fail("expected %s, not %s%s", kind, pdu._kind, pdu._kind == "reject" and (" with reason %d"):format(pdu.reason) or "")
	end
	for name, value in pairs(fields or {}) do
		equal(pdu[name], value, name .. " of the " .. kind)
	end
	return pdu
end

-- Passes if the peer closes the connection; PDUs before that are ignored.
function Conn:expect_closed()
	for _ = 1, 20 do
		local pdu, why = self:recv()
		if why == "closed" then return end
		if why == "timeout" then fail("the peer keeps the connection open for %d s", options.timeout) end
	end
	fail("the peer goes on sending")
end

-- Passes if nothing comes for some seconds, and the connection stays.
function Conn:expect_nothing(seconds)
	local pdu, why = self:recv(seconds or 0.5)
	if pdu then fail("an unexpected %s came", pdu._kind) end
	if why == "closed" then fail("the peer closed the connection") end
end

-- Passes if a Reject with one of these reasons comes; also if the connection ends, where or_closed is set.
function Conn:expect_reject(reasons, or_closed)
	local pdu, why = self:recv()
	if not pdu and why == "closed" and or_closed then return end
	if not pdu then fail("expected a Reject, but %s", why == "closed" and "the peer closed the connection" or "nothing came") end
	if pdu._kind ~= "reject" then fail("expected a Reject, not %s", pdu._kind) end
	for _, reason in ipairs(type(reasons) == "table" and reasons or { reasons }) do
		if pdu.reason == reason then
			if pdu.expcmdsn then self.cmdsn = pdu.expcmdsn end -- §7.3: the CmdSN of a rejected request counts as missing
			return pdu
		end
	end
	fail("the reason of the Reject is %d", pdu.reason)
end
