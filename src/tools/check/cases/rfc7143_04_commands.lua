-- SPDX-License-Identifier: BSD-2-Clause
-- rfc7143_04_commands.lua: RFC 7143 §4.2.2, §7.3, §7.7, §11.1 to §11.4, §11.14, §11.18: numbering, format errors, NOPs, logout.
rfc "7143"

-- ---- numbering (§4.2.2) ----

case {
	section = "4.2.2.1", name = "immediate-does-not-advance", clauses = "4.2.2.1 #1 #2",
	what = "An immediate command does not advance ExpCmdSN.",
	run = function(t)
		local c = t:session()
		local before = c.cmdsn
		c:request("nop_out", { immediate = true, ttt = NO_TAG, _data = "now" })
		equal(c:expect("nop_in").expcmdsn, before, "ExpCmdSN")
	end,
}

case {
	section = "4.2.2.1", name = "command-advances", clauses = "4.2.2.1 #3 #8",
	what = "Each other command advances ExpCmdSN by 1.",
	run = function(t)
		local c = t:session()
		for i = 1, 5 do
			local before = c.cmdsn
			equal(c:ping("ping " .. i).expcmdsn, before + 1, "ExpCmdSN")
		end
	end,
}

case {
	section = "4.2.2.1", name = "window", clauses = "4.2.2.1 #10",
	what = "MaxCmdSN is not below ExpCmdSN - 1, and never goes back.",
	run = function(t)
		local c, last = t:session(), nil
		for _ = 1, 10 do
			local r = c:ping()
			local room = (r.maxcmdsn - r.expcmdsn + 1) & NO_TAG
			if room >= 1 << 31 then fail("MaxCmdSN is %d, ExpCmdSN %d", r.maxcmdsn, r.expcmdsn) end
			if last and (r.maxcmdsn - last) & NO_TAG >= 1 << 31 then fail("MaxCmdSN goes back from %d to %d", last, r.maxcmdsn) end
			last = r.maxcmdsn
		end
	end,
}

case {
	section = "4.2.2.1", name = "beyond-the-window", clauses = "4.2.2.1 #11",
	what = "A command beyond MaxCmdSN is ignored silently.",
	run = function(t)
		local c = t:session()
		local r = c:ping()
		c:request("nop_out", { ttt = NO_TAG, cmdsn = (r.maxcmdsn + 1000) & NO_TAG, _data = "far" })
		c:expect_nothing()
		c:ping()
	end,
}

case {
	section = "4.2.2.1", name = "duplicate", clauses = "4.2.2.1 #11",
	what = "A command with a CmdSN that was received before is ignored silently.",
	run = function(t)
		local c = t:session()
		local old = c.cmdsn
		c:ping()
		c:request("nop_out", { ttt = NO_TAG, cmdsn = old, _data = "again" })
		c:expect_nothing()
		c:ping()
	end,
}

case {
	section = "4.2.2.1", name = "gap", clauses = "4.2.2.1 #6",
	what = "A command whose predecessor is missing waits for it; then both are executed in the order of CmdSN.",
	run = function(t)
		local c = t:session()
		local sn = c.cmdsn
		local second = c:request("nop_out", { ttt = NO_TAG, cmdsn = sn + 1, _data = "second" })
		c:expect_nothing()
		local first = c:request("nop_out", { ttt = NO_TAG, cmdsn = sn, _data = "first" })
		c:expect("nop_in", { itt = first })
		equal(c:expect("nop_in", { itt = second }).expcmdsn, sn + 2, "ExpCmdSN")
	end,
}

case {
	section = "4.2.2.1", name = "immediate-passes-a-gap", clauses = "4.2.2.1 #5",
	what = "An immediate command does not wait for commands that are missing.",
	run = function(t)
		local c = t:session()
		local sn = c.cmdsn
		c:request("nop_out", { ttt = NO_TAG, cmdsn = sn + 1, _data = "second" })
		local now = c:request("nop_out", { ttt = NO_TAG, immediate = true, cmdsn = sn, _data = "now" })
		c:expect("nop_in", { itt = now })
	end,
}

case {
	section = "4.2.2.2", name = "statsn", clauses = "4.2.2.2 #3",
	what = "StatSN advances by 1 with each response.",
	run = function(t)
		local c = t:session()
		local last = c:ping().statsn
		for _ = 1, 5 do
			local sn = c:ping().statsn
			equal(sn, (last + 1) & NO_TAG, "StatSN")
			last = sn
		end
	end,
}

case {
	section = "4.2.2.2", name = "statsn-after-login", clauses = "4.2.2.2 #3",
	what = "StatSN goes on from the login.",
	run = function(t)
		local c = t:connect()
		local r = c:login(names(), operational())
		equal(c:ping().statsn, (r.statsn + 1) & NO_TAG, "StatSN of the first response")
	end,
}

-- ---- reserved fields and padding ----

local function check_reserved(pdu)
	for name, value in pairs(pdu) do
		if name:find("^rsvd") and value ~= 0 and value ~= false then fail("%s of the %s is %s, not 0", name, pdu._kind, tostring(value)) end
	end
	if pdu._padding:find("[^%z]") then fail("the padding of the %s is not 0", pdu._kind) end
end

case {
	section = "11", name = "reserved-of-login-response", clauses = "11 #1", open = true,
	what = "Reserved fields of a Login Response are 0.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, names())
		check_reserved(c:login_response())
	end,
}

case {
	section = "11", name = "reserved-of-responses", clauses = "11 #1",
	what = "Reserved fields and padding of NOP-In, Text Response, Data-In, SCSI Response, Task Management Response and Logout Response are 0.",
	run = function(t)
		local c = t:unit()
		check_reserved(c:ping("odd"))
		check_reserved(c:text { "X-org.example.a=1" })
		local cdb, n = inquiry(5)
		local r = c:scsi { cdb = cdb, read = n }
		for _, pdu in ipairs(r.data_ins) do check_reserved(pdu) end
		check_reserved(c:scsi({ cdb = (test_unit_ready()) }).response)
		c:request("task_request", { func = 1, immediate = true, lun = lun_field(), rtt = 0x7777 })
		check_reserved(c:expect("task_response"))
		check_reserved(c:logout())
	end,
}

case {
	section = "11", name = "reserved-ignored-nop", clauses = "11 #2",
	what = "A target ignores the reserved fields of a NOP-Out.",
	run = function(t)
		local c = t:session()
		local itt = c:request("nop_out", { ttt = NO_TAG, flags = 0x7f, rsvd_b32 = -1, _data = "ping" })
		c:expect("nop_in", { itt = itt })
	end,
}

case {
	section = "11", name = "reserved-ignored-command", clauses = "11 #2",
	what = "A target ignores the reserved fields of a SCSI Command.",
	run = function(t)
		local c = t:unit()
		equal(c:scsi({ cdb = (test_unit_ready()), rsvd_b1 = 3, rsvd_b2 = 0xffff }).status, 0, "the status")
	end,
}

case {
	section = "11", name = "reserved-bit-of-byte-0", clauses = "11 #2",
	what = "A target ignores the reserved bit of byte 0.",
	run = function(t)
		local c = t:session()
		local itt = c:request("nop_out", { ttt = NO_TAG, rsvd_b0 = 1, _data = "ping" })
		c:expect("nop_in", { itt = itt })
	end,
}

-- ---- opcodes and lengths ----

for _, opcode in ipairs { 0x07, 0x0f, 0x11, 0x1b, 0x1c, 0x1e, 0x1f } do
	case {
		section = "11.2.1.2", name = ("opcode-%02xh"):format(opcode), family = "opcode", clauses = "7.7 #1",
		what = ("A request with the opcode %02xh, which is reserved or of a vendor, is rejected, or ends the connection."):format(opcode),
		run = function(t)
			local c = t:session()
			c:request("nop_out", { opcode = opcode, ttt = NO_TAG })
			c:expect_reject({ 0x04, 0x05, 0x09 }, true)
		end,
	}
end

for _, opcode in ipairs { 0x20, 0x21, 0x23, 0x25, 0x31, 0x3f } do
	case {
		section = "11.2.1.2", name = ("opcode-of-target-%02xh"):format(opcode), family = "target-opcode", clauses = "11.2.1.2 #1",
		what = ("A request with the opcode %02xh, which is one of targets, is rejected, or ends the connection."):format(opcode),
		run = function(t)
			local c = t:session()
			c:request("nop_out", { opcode = opcode, ttt = NO_TAG })
			c:expect_reject({ 0x04, 0x05, 0x09 }, true)
		end,
	}
end

case {
	section = "11.2.1.6", name = "segment-too-long", clauses = "7.7 #1",
	what = "A DataSegmentLength above MaxRecvDataSegmentLength ends the connection or is rejected; the target does not wait for the data.",
	why = "A target that allocates what the header says can be stopped by one PDU.",
	run = function(t)
		local c = t:session()
		c:request("nop_out", { ttt = NO_TAG, dsl = 0xffffff })
		c:expect_reject({ 0x04, 0x09 }, true)
	end,
}

case {
	section = "11.5.2", name = "data-in-a-task-request", level = "SHOULD", clauses = "11.5.2 #1",
	what = "A Task Management Function Request with data is rejected, or its data are ignored; the session goes on or ends.",
	run = function(t)
		local c = t:session()
		c:request("task_request", { func = 1, immediate = true, lun = lun_field(), rtt = 0x7777, _data = "data" })
		local _, why = c:recv()
		if why == "timeout" then fail("no answer") end
	end,
}

case {
	section = "11.2.1.8", name = "reserved-tag", level = "SHOULD", clauses = "11.2.1.8 #2",
	what = "A SCSI Command with the tag ffffffffh is rejected, or ends the connection.",
	run = function(t)
		local c = t:unit()
		c:command { cdb = (test_unit_ready()), itt = NO_TAG }
		c:expect_reject({ 0x04, 0x09 }, true)
	end,
}

case {
	section = "11.3.1", name = "neither-w-nor-f", clauses = "11.3.1 #1", level = "MAY",
	what = "A SCSI Command with neither W nor F is rejected, or ends the connection.",
	run = function(t)
		local c = t:unit()
		c:command { cdb = (test_unit_ready()), final = false }
		c:expect_reject({ 0x04, 0x09 }, true)
	end,
}

case {
	section = "7.3", name = "reject-has-the-header", clauses = "11.17",
	what = "The data of a Reject are the header of the PDU that is rejected; its tag is ffffffffh.",
	run = function(t)
		local c = t:session()
		c:request("nop_out", { opcode = 0x1b, ttt = NO_TAG, itt = 0x2468, immediate = true })
		local pdu, why = c:recv()
		if not pdu then unsupported("the target closes the connection (%s)", why) end
		equal(pdu._kind, "reject", "the answer")
		equal(pdu.itt, NO_TAG, "the tag of the Reject")
		if #pdu._data < 48 then fail("the Reject has %d bytes of data", #pdu._data) end
		equal(engine.pdu_decode(pdu._data:sub(1, 48)).itt, 0x2468, "the tag in the rejected header")
	end,
}

case {
	section = "11.2.2.3", name = "unknown-ahs", level = "MAY",
	what = "A command with an AHS of an unknown type does not end the session without an answer.",
	run = function(t)
		local c = t:unit()
		c:command { cdb = (test_unit_ready()), _ahs = "\0\5\63\0\0\0\0\0" }
		local pdu, why = c:recv()
		if not pdu and why == "timeout" then fail("no answer") end
	end,
}

-- ---- NOP ----

for _, n in ipairs { 0, 1, 3, 4, 511, 4096, 8192 } do
	case {
		section = "11.18", name = "ping-" .. n, family = "ping", clauses = "11.18.1 #3, 11.19 #1 #2 #3",
		what = ("A NOP-Out with %d bytes is answered with the same bytes, its tag and the Target Transfer Tag ffffffffh."):format(n),
		run = function(t)
			local c = t:session()
			if n > c.max_data then skip("the target takes %d bytes at most", c.max_data) end
			equal(c:ping(engine.random(n)).ttt, NO_TAG, "the Target Transfer Tag")
		end,
	}
end

case {
	section = "11.18", name = "no-answer-wanted", clauses = "11.18.1 #2",
	what = "A NOP-Out with the tag ffffffffh has no answer.",
	run = function(t)
		local c = t:session()
		c:request("nop_out", { ttt = NO_TAG, itt = NO_TAG, immediate = true })
		c:expect_nothing()
		c:ping()
	end,
}

case {
	section = "11.18", name = "ping-cut", clauses = "11.19 #2",
	what = "The answer to a NOP-Out is cut to the MaxRecvDataSegmentLength of the initiator.",
	run = function(t)
		local c = t:session { MaxRecvDataSegmentLength = "512" }
		if c.max_data < 1024 then skip("the target takes less than 1024 bytes") end
		c:request("nop_out", { ttt = NO_TAG, _data = ("x"):rep(1024) })
		local r = c:expect("nop_in")
		if #r._data > 512 then fail("the NOP-In has %d bytes", #r._data) end
	end,
}

-- ---- logout ----

case {
	section = "11.14", name = "close-the-session", clauses = "11.15 #1",
	what = "A Logout with reason 0 is answered with 0, and the target closes the connection or lets the initiator do so.",
	run = function(t)
		local c = t:session()
		equal(c:logout(0).response, 0, "the response")
		c.sock:finish()
		c:expect_closed()
	end,
}

case {
	section = "11.14", name = "close-the-connection", clauses = "11.15",
	what = "A Logout with reason 1 and the CID of the connection is answered with 0.",
	run = function(t)
		equal(t:session():logout(1).response, 0, "the response")
	end,
}

case {
	section = "11.15.1", name = "unknown-cid", clauses = "11.15.1",
	what = "A Logout with reason 1 and a CID that does not exist is answered with 1, CID not found, and the session goes on.",
	run = function(t)
		local c = t:session()
		c:request("logout_request", { reason = 1, cid = 0x4321, immediate = true })
		c:expect("logout_response", { response = 1 })
		c:ping()
	end,
}

case {
	section = "11.15.1", name = "recovery-at-level-0", clauses = "11.15.1",
	what = "A Logout with reason 2 (recovery) at ErrorRecoveryLevel 0 is answered with 2.",
	run = function(t)
		local c = t:session()
		equal(c:logout(2).response, 2, "the response")
	end,
}

case {
	section = "11.14.1", name = "reserved-reason", clauses = "11 #3",
	what = "A Logout with a reserved reason is rejected, or has a response other than 0.",
	run = function(t)
		local c = t:session()
		c:request("logout_request", { reason = 5, cid = c.cid, immediate = true })
		local pdu, why = c:recv()
		if why == "timeout" then fail("no answer") end
		if pdu and pdu._kind == "logout_response" and pdu.response == 0 then fail("the target logs out") end
	end,
}

case {
	section = "11.14", name = "logout-is-ordered", clauses = "4.2.2.1 #6",
	what = "A Logout that is not immediate waits for the commands before it.",
	run = function(t)
		local c = t:session()
		local sn = c.cmdsn
		c:request("logout_request", { reason = 0, cmdsn = sn + 1 })
		c:expect_nothing()
		c:request("nop_out", { ttt = NO_TAG, cmdsn = sn, _data = "first" })
		c:expect("nop_in")
		c:expect("logout_response", { response = 0 })
	end,
}
