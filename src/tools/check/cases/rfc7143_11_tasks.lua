-- SPDX-License-Identifier: BSD-2-Clause
-- rfc7143_11_tasks.lua: RFC 7143 §4.2.3, §6.3.4, §7, §11.5, §11.6, §11.16: task management, recovery, several connections.
rfc "7143"

local ABORT_TASK, ABORT_TASK_SET, CLEAR_TASK_SET, LUN_RESET, WARM_RESET, REASSIGN = 1, 2, 4, 5, 6, 8

local function task_request(c, func, f)
	local r = { func = func, lun = lun_field(), rtt = NO_TAG, immediate = true }
	for k, v in pairs(f or {}) do r[k] = v end
	local itt = c:request("task_request", r)
	return c:expect("task_response", { itt = itt })
end

case {
	section = "7.11", name = "abort-of-no-task", clauses = "7.11 #3",
	what = "ABORT TASK of a tag that no task has, with a RefCmdSN before the window, is answered with 1, Task does not exist.",
	run = function(t)
		local c = t:session()
		c:ping()
		equal(task_request(c, ABORT_TASK, { rtt = 0x7777, refcmdsn = (c.cmdsn - 1) & NO_TAG }).response, 1, "the response")
	end,
}

case {
	section = "7.11", name = "abort-of-a-missing-command", clauses = "7.11 #2",
	what = "ABORT TASK of a command that did not arrive is answered with 0, and its CmdSN counts as received.",
	run = function(t)
		local c = t:session()
		local missing = c.cmdsn
		c.cmdsn = missing + 1
		equal(task_request(c, ABORT_TASK, { rtt = 0x7777, refcmdsn = missing }).response, 0, "the response")
		c:ping()
	end,
}

case {
	section = "11.5.1", name = "abort-task", clauses = "11.5.1 #1 #3", destructive = true,
	what = "ABORT TASK of a write that waits for data is answered with 0; the write has no response, and the session goes on.",
	run = function(t)
		local c = t:scratch { ImmediateData = "No" }
		local sn = c.cmdsn
		local itt = c:command { cdb = write10(c.lba, 1), write = c.block }
		c:expect("r2t", { itt = itt })
		equal(task_request(c, ABORT_TASK, { rtt = itt, refcmdsn = sn }).response, 0, "the response")
		c:expect_nothing()
		c:ping()
	end,
}

case {
	section = "11.5.1", name = "abort-twice", clauses = "7.11 #3", destructive = true,
	what = "A second ABORT TASK of the same task is answered with 1, Task does not exist.",
	run = function(t)
		local c = t:scratch { ImmediateData = "No" }
		local sn = c.cmdsn
		local itt = c:command { cdb = write10(c.lba, 1), write = c.block }
		c:expect("r2t", { itt = itt })
		task_request(c, ABORT_TASK, { rtt = itt, refcmdsn = sn })
		equal(task_request(c, ABORT_TASK, { rtt = itt, refcmdsn = sn }).response, 1, "the response")
	end,
}

case {
	section = "11.6.1", name = "unknown-lun", clauses = "11.5.1 #1",
	what = "A function for a LUN that does not exist is answered with 2, LUN does not exist.",
	run = function(t)
		equal(task_request(t:session(), ABORT_TASK_SET, { lun = 0x00fa << 48 }).response, 2, "the response")
	end,
}

for _, func in ipairs { 0, 9, 15, 127 } do
	case {
		section = "11.5.1", name = "function-" .. func, family = "function", clauses = "11.5.1 #1, 11 #3",
		what = ("The function %d does not exist: it is rejected, or answered with a response other than 0."):format(func),
		run = function(t)
			local c = t:session()
			c:request("task_request", { func = func, lun = lun_field(), rtt = NO_TAG, immediate = true })
			local pdu, why = c:recv()
			if why == "timeout" then fail("no answer") end
			if pdu and pdu._kind == "task_response" and pdu.response == 0 then fail("the function is complete") end
		end,
	}
end

case {
	section = "11.5.1", name = "abort-task-set", clauses = "4.2.3.3 #1", alone = true, destructive = true,
	what = "ABORT TASK SET ends the tasks of the session on the unit, and is answered with 0 (or 5, not supported).",
	run = function(t)
		local c = t:scratch { ImmediateData = "No" }
		local itt = c:command { cdb = write10(c.lba, 1), write = c.block }
		local r2t = c:expect("r2t", { itt = itt })
		local function_itt = c:request("task_request", { func = ABORT_TASK_SET, lun = lun_field(), rtt = NO_TAG, immediate = true })
		c:data_out(itt, r2t.ttt, ("x"):rep(c.block), r2t.offset) -- §4.2.3.3: the initiator answers R2Ts of affected tasks
		local pdu = c:recv()
		if pdu and pdu._kind == "scsi_response" and pdu.itt == itt then pdu = c:recv() end -- it ended before the function
		if not pdu then fail("no response") end
		equal(pdu._kind, "task_response", "the answer")
		equal(pdu.itt, function_itt, "the tag")
		if pdu.response ~= 0 and pdu.response ~= 5 then fail("the response is %d", pdu.response) end
		c:expect_nothing()
	end,
}

for name, func in pairs { ["clear-task-set"] = CLEAR_TASK_SET, ["logical-unit-reset"] = LUN_RESET } do
	case {
		section = "11.5.1", name = name, family = "unit-function", clauses = "11.5.1 #1 #11", alone = true, destructive = true,
		what = name .. " is answered with 0 (or 5, not supported), and the unit works afterwards.",
		run = function(t)
			local c = t:unit()
			local response = task_request(c, func).response
			if response == 5 or response == 255 then unsupported("response %d", response) end
			equal(response, 0, "the response")
			c:ready()
		end,
	}
end

case {
	section = "11.5.1", name = "reassign-at-level-0", clauses = "7.2.2 #4",
	what = "TASK REASSIGN at ErrorRecoveryLevel 0 is not complete: the response is not 0.",
	run = function(t)
		local c = t:session()
		c:request("task_request", { func = REASSIGN, lun = lun_field(), rtt = 0x7777, immediate = true })
		local pdu, why = c:recv()
		if why == "timeout" then fail("no answer") end
		if pdu and pdu._kind == "task_response" and pdu.response == 0 then fail("the function is complete") end
	end,
}

-- ---- SNACK ----

case {
	section = "11.16", name = "snack-at-level-0", clauses = "7.1.5 #1",
	what = "A SNACK at ErrorRecoveryLevel 0 is rejected, or ends the connection.",
	run = function(t)
		local c = t:session()
		c:send("snack", { final = true, type = 0, itt = 0x7777, ttt = NO_TAG, lun = lun_field(), expstatsn = c.expstatsn, begrun = 0, runlength = 1 })
		c:expect_reject({ 0x03, 0x04, 0x05, 0x09 }, true)
	end,
}

-- Reads four blocks in Data-Ins of 512 bytes, without an acknowledgement of the status.
local function read_unacknowledged(t)
	local c = t:session_with("ErrorRecoveryLevel", "1", { MaxRecvDataSegmentLength = "512" }):ready()
	local acknowledged = c.expstatsn
	local itt = c:command { cdb = (read10(0, 4)), read = 2048 }
	local r = c:finish(itt)
	return c, itt, r, acknowledged
end

case {
	section = "7.8", name = "snack-of-data", clauses = "7.8 #7, 11.16 #1 #5",
	what = "At ErrorRecoveryLevel 1 a Data SNACK brings the same Data-Ins again, with their DataSNs.",
	run = function(t)
		local c, itt, r, acknowledged = read_unacknowledged(t)
		if #r.data_ins < 2 then skip("the read has one Data-In") end
		c:send("snack", { final = true, type = 0, itt = itt, ttt = NO_TAG, lun = lun_field(), expstatsn = acknowledged, begrun = 0, runlength = 2 })
		for i = 1, 2 do
			local pdu = c:expect("data_in", { itt = itt, datasn = i - 1, offset = r.data_ins[i].offset })
			if pdu._data ~= r.data_ins[i]._data then fail("Data-In %d has other data", i) end
		end
	end,
}

case {
	section = "11.16", name = "snack-of-status", clauses = "11.4.9 #1, 11.16 #1 #2",
	what = "At ErrorRecoveryLevel 1 a Status SNACK brings the response again, with its StatSN.",
	run = function(t)
		local c = t:session_with("ErrorRecoveryLevel", "1"):ready()
		local acknowledged = c.expstatsn
		local itt = c:command { cdb = (test_unit_ready()) }
		local r = c:expect("scsi_response", { itt = itt })
		c:send("snack", { final = true, type = 1, itt = NO_TAG, ttt = NO_TAG, expstatsn = acknowledged, begrun = r.statsn, runlength = 1 })
		c:expect("scsi_response", { itt = itt, statsn = r.statsn, status = r.status })
	end,
}

case {
	section = "11.16", name = "snack-of-r2t", clauses = "7.8 #7, 11.16 #1 #2", destructive = true,
	what = "At ErrorRecoveryLevel 1 an R2T SNACK brings the R2T again, with its R2TSN.",
	run = function(t)
		local lba = t:scratch().lba
		local c = t:session_with("ErrorRecoveryLevel", "1", { ImmediateData = "No" }):ready()
		local _, block = string.unpack(">I4I4", c:scsi({ cdb = (read_capacity()), read = 8 }).data)
		local itt = c:command { cdb = write10(lba, 1), write = block }
		local r2t = c:expect("r2t", { itt = itt })
		c:send("snack", { final = true, type = 0, itt = itt, ttt = NO_TAG, lun = lun_field(), expstatsn = c.expstatsn, begrun = 0, runlength = 1 })
		local again = c:expect("r2t", { itt = itt, r2tsn = r2t.r2tsn, offset = r2t.offset, length = r2t.length })
		c:data_out(itt, again.ttt, ("x"):rep(block), 0)
		equal(c:finish(itt).status, 0, "the status")
	end,
}

case {
	section = "11.16", name = "snack-beyond-the-data", clauses = "7.8 #7, 11.16 #7",
	what = "A Data SNACK for Data-Ins that were never sent is rejected.",
	run = function(t)
		local c, itt, r, acknowledged = read_unacknowledged(t)
		c:send("snack", { final = true, type = 0, itt = itt, ttt = NO_TAG, lun = lun_field(), expstatsn = acknowledged, begrun = #r.data_ins + 50,
			runlength = 1 })
		c:expect_reject({ 0x03, 0x04 }, true)
	end,
}

for _, kind in ipairs { 4, 15 } do
	case {
		section = "11.16.1", name = "snack-type-" .. kind, family = "snack-type", clauses = "11 #3",
		what = ("A SNACK of the reserved type %d is rejected, or ends the connection."):format(kind),
		run = function(t)
			local c = t:session_with("ErrorRecoveryLevel", "1")
			c:send("snack", { final = true, type = kind, itt = NO_TAG, ttt = NO_TAG, expstatsn = c.expstatsn })
			c:expect_reject({ 0x03, 0x04, 0x05, 0x09 }, true)
		end,
	}
end

-- ---- several connections ----

-- Joins the session of a as the connection cid; returns the connection and the final response.
local function join_session(t, a, cid)
	local b = t:connect()
	b.isid, b.tsih, b.cid, b.cmdsn = a.isid, a.tsih, cid, a.cmdsn
	b:login(names(), { "HeaderDigest=None", "DataDigest=None" })
	return b
end

case {
	section = "6.3.1", name = "second-connection", clauses = "4.2.1 #1, 4.2.5.1 #1",
	what = "A second connection joins a session; each answers what it is sent, and CmdSN is one for both.",
	run = function(t)
		local a = t:session_with("MaxConnections", "2")
		local b = join_session(t, a, 1)
		equal(b.tsih, a.tsih, "TSIH")
		for _ = 1, 3 do
			a:ping("first")
			b.cmdsn = a.cmdsn
			b:ping("second")
			a.cmdsn = b.cmdsn
		end
	end,
}

case {
	section = "4.2.2.1", name = "order-over-connections", clauses = "4.2.2.1 #6, 4.2.5.1 #1",
	what = "A command on one connection waits for the command before it on the other.",
	run = function(t)
		local a = t:session_with("MaxConnections", "2")
		local b = join_session(t, a, 1)
		local sn = a.cmdsn
		b:request("nop_out", { ttt = NO_TAG, cmdsn = sn + 1, _data = "second" })
		b:expect_nothing()
		a:request("nop_out", { ttt = NO_TAG, cmdsn = sn, _data = "first" })
		a:expect("nop_in")
		b:expect("nop_in")
	end,
}

case {
	section = "4.2.2.2", name = "statsn-of-each-connection", clauses = "4.2.2.2 #3",
	what = "Each connection has a StatSN of its own.",
	run = function(t)
		local a = t:session_with("MaxConnections", "2")
		local b = join_session(t, a, 1)
		local first = b:ping().statsn
		b.itt = b.itt + 100
		a.cmdsn = b.cmdsn
		a:ping()
		a:ping()
		b.cmdsn = a.cmdsn
		equal(b:ping().statsn, (first + 1) & NO_TAG, "StatSN of the second connection")
	end,
}

case {
	section = "13.2", name = "too-many-connections", clauses = "11.13.5",
	what = "A connection beyond MaxConnections is refused (0206h).",
	run = function(t)
		local a = t:session { MaxConnections = "1" }
		local b = t:connect()
		b.isid, b.tsih, b.cid, b.cmdsn = a.isid, a.tsih, 1, a.cmdsn
		local r, why = b:propose {}
		if not r and why == "closed" then return end
		if not r then fail("no answer") end
		if r.status == 0 then fail("the target takes a second connection") end
		a:ping()
	end,
}

case {
	section = "11.15", name = "logout-of-the-other-connection", clauses = "11.15 #1",
	what = "A Logout with reason 1 for the other connection closes that one, and the session goes on.",
	run = function(t)
		local a = t:session_with("MaxConnections", "2")
		local b = join_session(t, a, 1)
		a:request("logout_request", { reason = 1, cid = 1, immediate = true })
		a:expect("logout_response", { response = 0 })
		b.sock:finish()
		b:expect_closed()
		a:ping()
	end,
}

case {
	section = "6.3.4", name = "connection-reinstatement", clauses = "6.3.4 #1",
	what = "A login with the TSIH and the CID of a connection replaces that connection.",
	run = function(t)
		local a = t:session_with("MaxConnections", "2")
		local b = join_session(t, a, 1)
		local again = join_session(t, a, 1)
		b:expect_closed()
		again:ping()
	end,
}

case {
	section = "6.3.4", name = "wrong-isid-for-tsih", clauses = "11.12.6 #4",
	what = "A login with the TSIH of a session and another ISID is refused with 020ah, Session does not exist.",
	run = function(t)
		local a = t:session_with("MaxConnections", "2")
		local b = t:connect()
		b.tsih, b.cid, b.cmdsn = a.tsih, 1, a.cmdsn
		local r, why = b:propose {}
		if not r then fail("no answer: %s", why) end
		if r.status == 0 then fail("the target takes the connection into a session of another ISID") end
		a:ping()
	end,
}

case {
	section = "7.2.2", name = "reassign", clauses = "7.2.2 #1 #3, 11.5.1 #14", destructive = true,
	what = "At ErrorRecoveryLevel 2 a write whose connection is lost goes on at another one, after Logout for recovery and TASK REASSIGN.",
	run = function(t)
		local lba = t:scratch().lba
		local a = t:session_with("ErrorRecoveryLevel", "2", { MaxConnections = "2", ImmediateData = "No", DefaultTime2Retain = "20" }):ready()
		if a.result.MaxConnections ~= "2" then unsupported("MaxConnections=%s", tostring(a.result.MaxConnections)) end
		local _, block = string.unpack(">I4I4", a:scsi({ cdb = (read_capacity()), read = 8 }).data)
		local b = join_session(t, a, 1)
		b.itt, b.cmdsn = a.itt + 100, a.cmdsn
		local itt = b:command { cdb = write10(lba, 1), write = block }
		b:expect("r2t", { itt = itt })
		b:close()
		a.cmdsn = b.cmdsn
		a:request("logout_request", { reason = 2, cid = 1, immediate = true })
		local pdu = a:recv()
		if pdu and pdu._kind == "async" then pdu = a:recv() end -- the target reports the lost connection
		if not pdu or pdu._kind ~= "logout_response" then fail("no Logout Response") end
		equal(pdu.response, 0, "the response to the Logout")
		sleep(pdu.time2wait)
		equal(task_request(a, REASSIGN, { rtt = itt, refcmdsn = 0, expdatasn = 0 }).response, 0, "the response to TASK REASSIGN")
		equal(a:finish(itt, ("x"):rep(block)).status, 0, "the status")
	end,
}
