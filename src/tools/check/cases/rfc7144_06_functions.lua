-- SPDX-License-Identifier: BSD-2-Clause
-- rfc7144_06_functions.lua: RFC 7144 §5.1, §6: the task management functions of iSCSIProtocolLevel 2.
rfc "7144"

local QUERY_TASK, QUERY_TASK_SET, NEXUS_RESET, QUERY_ASYNC_EVENT = 9, 10, 11, 12
local COMPLETE, SUCCEEDED = 0, 7

local function ask(c, func, f)
	local r = { func = func, lun = lun_field(), rtt = NO_TAG, immediate = true }
	for k, v in pairs(f or {}) do r[k] = v end
	local itt = c:request("task_request", r)
	local response = c:expect("task_response", { itt = itt }).response
	if response == 5 then unsupported("the target does not have the function") end
	return response
end

local function level_2(t)
	return t:session_with("iSCSIProtocolLevel", "2", { ImmediateData = "No" }):ready()
end

-- A write that waits for its data, as a task to ask for; returns its tag and CmdSN.
local function waiting_write(t, c)
	local lba = t:scratch().lba
	local _, block = string.unpack(">I4I4", c:scsi({ cdb = (read_capacity()), read = 8 }).data)
	local sn = c.cmdsn
	local itt = c:command { cdb = write10(lba, 1), write = block }
	c:expect("r2t", { itt = itt })
	return itt, sn
end

for _, func in ipairs { QUERY_TASK, QUERY_TASK_SET, NEXUS_RESET, QUERY_ASYNC_EVENT } do
	case {
		section = "6.3", name = "function-at-level-1-" .. func, family = "level-1", clauses = "4.1 #1, 6.3 #1",
		what = ("The function %d without iSCSIProtocolLevel=2 is rejected, or not executed."):format(func),
		run = function(t)
			local c = t:session { iSCSIProtocolLevel = "1" }
			c:request("task_request", { func = func, lun = lun_field(), rtt = NO_TAG, immediate = true })
			local pdu, why = c:recv()
			if why == "timeout" then fail("no answer") end
			if pdu and pdu._kind == "task_response" and (pdu.response == COMPLETE or pdu.response == SUCCEEDED) then
				fail("the target executes the function: response %d", pdu.response)
			end
		end,
	}
end

case {
	section = "6.3", name = "query-task", clauses = "4.1 #2, 6.3 #3 #6, 6.3.3 #2", destructive = true,
	what = "QUERY TASK of a task in the task set is answered with 7, Function succeeded.",
	run = function(t)
		local c = level_2(t)
		local itt, sn = waiting_write(t, c)
		equal(ask(c, QUERY_TASK, { rtt = itt, refcmdsn = sn }), SUCCEEDED, "the response")
	end,
}

case {
	section = "6.3", name = "query-no-task", clauses = "4.1 #2, 6.3 #3",
	what = "QUERY TASK of a task that does not exist is answered with 0, Function complete, or 1, Task does not exist.",
	run = function(t)
		local c = level_2(t)
		local response = ask(c, QUERY_TASK, { rtt = 0x7777, refcmdsn = (c.cmdsn - 1) & NO_TAG })
		if response ~= COMPLETE and response ~= 1 then fail("the response is %d", response) end
	end,
}

case {
	section = "6.3", name = "query-task-set", clauses = "4.1 #2, 6.3 #3", destructive = true,
	what = "QUERY TASK SET is answered with 7 while the session has a task on the unit.",
	run = function(t)
		local c = level_2(t)
		waiting_write(t, c)
		equal(ask(c, QUERY_TASK_SET), SUCCEEDED, "the response")
	end,
}

case {
	section = "6.3", name = "query-empty-task-set", clauses = "4.1 #2, 6.3 #3",
	what = "QUERY TASK SET is answered with 0 while the session has no task on the unit.",
	run = function(t)
		equal(ask(level_2(t), QUERY_TASK_SET), COMPLETE, "the response")
	end,
}

case {
	section = "6.3", name = "query-asynchronous-event", clauses = "4.1 #2, 6.3 #3",
	what = "QUERY ASYNCHRONOUS EVENT is answered with 0 or 7.",
	run = function(t)
		local response = ask(level_2(t), QUERY_ASYNC_EVENT)
		if response ~= COMPLETE and response ~= SUCCEEDED then fail("the response is %d", response) end
	end,
}

case {
	section = "6.3", name = "nexus-reset", clauses = "6.3 #10 #12", destructive = true,
	what = "I_T NEXUS RESET is answered with 0, or ends all connections of the session at once; other sessions go on.",
	run = function(t)
		local other = t:session()
		local c = level_2(t)
		c:request("task_request", { func = NEXUS_RESET, lun = lun_field(), rtt = NO_TAG, immediate = true })
		local pdu, why = c:recv()
		if why == "timeout" then fail("no answer") end
		if pdu then
			equal(pdu._kind, "task_response", "the answer")
			if pdu.response == 5 then unsupported("the target does not have the function") end
			equal(pdu.response, COMPLETE, "the response")
			c:expect_closed()
		end
		other:ping()
	end,
}

case {
	section = "5.1.1", name = "priority-at-level-1", clauses = "5.1.1 #2",
	what = "A target ignores the priority of a command without iSCSIProtocolLevel=2.",
	run = function(t)
		local c = t:unit { iSCSIProtocolLevel = "1" }
		equal(c:scsi({ cdb = (test_unit_ready()), rsvd_b2 = 0x0f00 }).status, 0, "the status")
	end,
}
