-- SPDX-License-Identifier: BSD-2-Clause
-- rfc7143_11_data.lua: RFC 7143 §4.2.4, §4.2.5, §11.3, §11.4, §11.7, §11.8, §13.1: data of reads and writes, residuals, digests.
rfc "7143"

-- ---- reads ----

local function check_data_ins(c, r, length, segment, burst)
	local offset, in_burst = 0, 0
	for i, pdu in ipairs(r.data_ins) do
		equal(pdu.datasn, i - 1, "DataSN")
		equal(pdu.offset, offset, "Buffer Offset of Data-In " .. i)
		if #pdu._data > segment then fail("Data-In %d has %d bytes, above MaxRecvDataSegmentLength", i, #pdu._data) end
		offset, in_burst = offset + #pdu._data, in_burst + #pdu._data
		if in_burst > burst then fail("a sequence of Data-Ins has %d bytes, above MaxBurstLength", in_burst) end
		if pdu.final then in_burst = 0 end
		if pdu.ack then fail("A is set at ErrorRecoveryLevel 0") end
	end
	equal(offset, length, "the number of bytes")
	if not r.data_ins[#r.data_ins].final then fail("the last Data-In has no F") end
end

for segment, burst in pairs { [512] = 512, [1024] = 4096, [8192] = 8192, [65536] = 262144 } do
	case {
		section = "11.7", name = "data-in-" .. segment, family = "data-in", clauses = "4.2.2.4 #1, 11.7.1 #1 #2, 11.7.2 #2",
		what = ("Data-Ins are numbered, continuous, at most %d bytes long, and each sequence of at most %d bytes ends with F."):format(segment, burst),
		run = function(t)
			local c = t:unit { MaxRecvDataSegmentLength = tostring(segment), MaxBurstLength = tostring(burst) }
			local n = math.max(32768 // c.block, 1)
			local r = c:scsi { cdb = read10(0, n), read = n * c.block }
			equal(r.status, 0, "the status")
			check_data_ins(c, r, n * c.block, segment, burst)
			if r.response._kind == "scsi_response" then equal(r.response.expdatasn, #r.data_ins, "ExpDataSN") end
		end,
	}
end

case {
	section = "11.7.3", name = "status-in-data-in", clauses = "11.7.3 #1 #4",
	what = "A Data-In with S has F and a status without sense data.",
	run = function(t)
		local c = t:unit()
		local r = c:scsi { cdb = read10(0, 1), read = c.block }
		if not r.response.has_status then unsupported("the target sends a SCSI Response") end
		equal(r.response.final, true, "F")
		if r.status == 2 then fail("CHECK CONDITION comes in a Data-In") end
	end,
}

case {
	section = "11.7.4", name = "ttt-of-data-in", clauses = "11.7.4 #1",
	what = "A Data-In without A has the Target Transfer Tag ffffffffh or one with a LUN.",
	run = function(t)
		local c = t:unit()
		for _, pdu in ipairs(c:scsi({ cdb = read10(0, 1), read = c.block }).data_ins) do
			if pdu.ttt ~= NO_TAG then equal(pdu.lun, lun_field(), "the LUN of a Data-In with a tag") end
		end
	end,
}

-- ---- residuals of reads ----

case {
	section = "11.4.5.2", name = "underflow", clauses = "11.4.5.2 #3 #4",
	what = "A command that sends less than was expected ends with U and the difference.",
	run = function(t)
		local c = t:unit()
		local cdb = inquiry(36)
		local r = c:scsi { cdb = cdb, read = 1000 }
		equal(r.underflow, true, "U")
		equal(r.overflow, false, "O")
		equal(r.residual, 1000 - #r.data, "the residual count")
	end,
}

case {
	section = "11.4.5.2", name = "overflow", clauses = "11.4.5.2 #1 #2",
	what = "A command that has more data than were expected ends with O and the difference, and sends what was expected.",
	run = function(t)
		local c = t:unit()
		local r = c:scsi { cdb = (read_capacity()), read = 4 }
		equal(r.status, 0, "the status")
		equal(r.overflow, true, "O")
		equal(r.residual, 4, "the residual count")
		equal(#r.data, 4, "the number of bytes")
	end,
}

case {
	section = "11.4.5.2", name = "overflow-of-a-read", clauses = "11.4.5.2 #1 #2", level = "SHOULD",
	what = "READ (10) of two blocks with an expected length of one ends with O and the difference.",
	run = function(t)
		local c = t:unit()
		local r = c:scsi { cdb = read10(0, 2), read = c.block }
		if r.status ~= 0 then unsupported("the target refuses such a command: status %02xh", r.status) end
		equal(r.overflow, true, "O")
		equal(r.residual, c.block, "the residual count")
		if #r.data > c.block then fail("%d bytes came", #r.data) end
	end,
}

case {
	section = "11.4.5.2", name = "no-data-where-some-expected", clauses = "11.4.5.2 #3 #4",
	what = "TEST UNIT READY with an expected length ends with U and that length.",
	run = function(t)
		local c = t:unit()
		local r = c:scsi { cdb = (test_unit_ready()), read = 512 }
		if r.status ~= 0 then unsupported("the target refuses such a command: status %02xh", r.status) end
		equal(r.underflow, true, "U")
		equal(r.residual, 512, "the residual count")
	end,
}

case {
	section = "11.4.5.1", name = "no-residual", clauses = "11.4.5.1 #2",
	what = "A command that transfers what was expected has neither O nor U.",
	run = function(t)
		local c = t:unit()
		local r = c:scsi { cdb = read10(0, 1), read = c.block }
		equal(r.underflow, false, "U")
		equal(r.overflow, false, "O")
	end,
}

case {
	section = "11.4.5.3", name = "report-luns-cut", clauses = "11.4.5.3 #1",
	what = "REPORT LUNS that is cut to its allocation length is no overflow.",
	run = function(t)
		local c = t:unit()
		local r = c:scsi { cdb = (report_luns(16)), read = 16 }
		if r.status ~= 0 then unsupported("status %02xh", r.status) end
		equal(r.overflow, false, "O")
	end,
}

case {
	section = "11.4.8", name = "ExpDataSN-without-data", clauses = "11.4.8 #1",
	what = "ExpDataSN is 0 where no Data-In was sent.",
	run = function(t)
		local c = t:unit()
		equal(c:scsi({ cdb = (test_unit_ready()) }).response.expdatasn, 0, "ExpDataSN")
		equal(c:scsi({ cdb = "\xff" .. ("\0"):rep(15) }).response.expdatasn, 0, "ExpDataSN of a command that fails")
	end,
}

case {
	section = "11.4.7", name = "sense-data", clauses = "11.4.7 #1 #2, 4.6.1.2 #1",
	what = "CHECK CONDITION comes with sense data whose length is right.",
	run = function(t)
		local c = t:unit()
		local r = c:scsi { cdb = "\xff" .. ("\0"):rep(15) }
		equal(r.status, 2, "the status of a command that does not exist")
		if not r.sense or #r.sense < 8 then fail("there are no sense data") end
		equal(string.unpack(">I2", r.response._data), #r.response._data - 2, "SenseLength")
		equal(sense_key(r), 5, "the sense key")
	end,
}

case {
	section = "11.4.2", name = "unknown-lun", level = "SHOULD", clauses = "4.6.1.2 #1",
	what = "A command to a LUN that does not exist ends with CHECK CONDITION, and no data.",
	run = function(t)
		local c = t:unit()
		local r = c:scsi { cdb = read10(0, 1), read = c.block, lun = 0x00fa << 48 }
		if r.status == 0 then fail("the status is GOOD") end
		equal(#r.data, 0, "the number of bytes")
	end,
}

case {
	section = "11.2.1.8", name = "tag-in-use", level = "SHOULD", clauses = "11.2.1.8 #1", destructive = true,
	what = "A command with the tag of a task in progress is rejected, or ends the connection or the task.",
	run = function(t)
		local c = t:scratch { ImmediateData = "No" }
		local itt = c:command { cdb = write10(c.lba, 1), write = c.block }
		local r2t = c:expect("r2t", { itt = itt })
		c:command { cdb = (test_unit_ready()), itt = itt }
		local pdu = c:recv()
		if pdu and pdu._kind == "scsi_response" and pdu.status == 0 and r2t then fail("the target executes a second command with the tag") end
	end,
}

-- ---- writes ----

-- Writes n blocks of random data with these keys, and compares what the unit has then.
local function write_and_compare(t, changes, blocks, f)
	local c = t:scratch(changes)
	local n = math.max(blocks // c.block, 1)
	local data = engine.random(math.min(n * c.block, 65536)):rep(math.max(n * c.block // 65536, 1)):sub(1, n * c.block)
	local r = f(c, n, data)
	equal(r.status, 0, "the status of the WRITE")
	local back = c:scsi { cdb = read10(c.lba, n), read = n * c.block }
	if back.data ~= data then fail("the unit does not have what was written") end
	return c, r
end

case {
	section = "11.8", name = "solicited", clauses = "4.2.4, 11.8.4 #1 #2, 11.8.5 #1, 11.8 #9", destructive = true,
	what = "R2Ts of a write are numbered, continuous, at most MaxBurstLength long, with a tag, and cover all data.",
	run = function(t)
		local size
		local _, r = write_and_compare(t, { ImmediateData = "No", MaxBurstLength = "8192", FirstBurstLength = "8192" }, 65536, function(c, n, data)
			size = #data
			return c:scsi({ cdb = write10(c.lba, n), write = #data }, data)
		end)
		local offset = 0
		for i, pdu in ipairs(r.r2ts) do
			equal(pdu.r2tsn, i - 1, "R2TSN")
			equal(pdu.offset, offset, "the offset of an R2T")
			if pdu.length == 0 or pdu.length > 8192 then fail("an R2T asks for %d bytes", pdu.length) end
			if pdu.ttt == NO_TAG then fail("an R2T has no Target Transfer Tag") end
			equal(pdu.lun, lun_field(), "the LUN of an R2T")
			offset = offset + pdu.length
		end
		equal(offset, size, "the bytes that R2Ts ask for")
	end,
}

case {
	section = "13.17", name = "max-outstanding-r2t", clauses = "13.17", destructive = true,
	what = "No more than MaxOutstandingR2T R2Ts of a task are outstanding.",
	run = function(t)
		local c = t:scratch { ImmediateData = "No", MaxBurstLength = "4096", FirstBurstLength = "4096", MaxOutstandingR2T = "1" }
		local n = 16384 // c.block
		local itt = c:command { cdb = write10(c.lba, n), write = 16384 }
		local first = c:expect("r2t", { itt = itt })
		c:expect_nothing()
		local r = { }
		c:data_out(itt, first.ttt, ("x"):rep(first.length), first.offset)
		r = c:finish(itt, ("x"):rep(16384))
		equal(r.status, 0, "the status")
	end,
}

case {
	section = "13.11", name = "immediate-data", clauses = "13.11", destructive = true,
	what = "A write with all its data in the command is executed.",
	run = function(t)
		write_and_compare(t, { ImmediateData = "Yes", InitialR2T = "Yes" }, 4096, function(c, n, data)
			if c.result.ImmediateData ~= "Yes" then unsupported("ImmediateData=No") end
			return c:scsi { cdb = write10(c.lba, n), write = #data, data = data:sub(1, c.max_data) }
		end)
	end,
}

case {
	section = "13.11", name = "part-immediate", clauses = "13.11, 11.3.4 #2", destructive = true,
	what = "Of a write with part of its data in the command the target asks for the rest.",
	run = function(t)
		write_and_compare(t, { ImmediateData = "Yes", InitialR2T = "Yes" }, 16384, function(c, n, data)
			if c.result.ImmediateData ~= "Yes" then unsupported("ImmediateData=No") end
			local r = c:finish(c:command { cdb = write10(c.lba, n), write = #data, data = data:sub(1, 1024) }, data)
			equal(r.r2ts[1] and r.r2ts[1].offset, 1024, "the offset of the first R2T")
			return r
		end)
	end,
}

case {
	section = "13.10", name = "unsolicited", clauses = "11.8 #1, 4.2.5.2 #2", destructive = true,
	what = "With InitialR2T=No a write with unsolicited Data-Outs is executed.",
	run = function(t)
		write_and_compare(t, { ImmediateData = "No", InitialR2T = "No", FirstBurstLength = "65536" }, 16384, function(c, n, data)
			if c.result.InitialR2T ~= "No" then unsupported("InitialR2T=Yes") end
			local itt = c:command { cdb = write10(c.lba, n), write = #data, final = false }
			c:data_out(itt, NO_TAG, data, 0, { max = 4096 })
			return c:finish(itt, data)
		end)
	end,
}

case {
	section = "13.10", name = "immediate-and-unsolicited", clauses = "4.2.5.2 #2", destructive = true,
	what = "Immediate data, unsolicited Data-Outs and R2Ts together bring all data of a write.",
	run = function(t)
		write_and_compare(t, { ImmediateData = "Yes", InitialR2T = "No", FirstBurstLength = "8192", MaxBurstLength = "16384" }, 65536, function(c, n, data)
			if c.result.InitialR2T ~= "No" or c.result.ImmediateData ~= "Yes" then unsupported("InitialR2T=Yes or ImmediateData=No") end
			local first = tonumber(c.result.FirstBurstLength)
			local itt = c:command { cdb = write10(c.lba, n), write = #data, final = false, data = data:sub(1, 2048) }
			c:data_out(itt, NO_TAG, data:sub(2049, first), 2048, { max = 2048 })
			return c:finish(itt, data)
		end)
	end,
}

case {
	section = "11.7.7", name = "empty-data-out", clauses = "11.7.7 #1", destructive = true,
	what = "A Data-Out without data is received.",
	run = function(t)
		write_and_compare(t, { ImmediateData = "No" }, 4096, function(c, n, data)
			local itt = c:command { cdb = write10(c.lba, n), write = #data }
			local r2t = c:expect("r2t", { itt = itt })
			c:send("data_out", { lun = lun_field(), itt = itt, ttt = r2t.ttt, expstatsn = c.expstatsn, datasn = 0 })
			c:send("data_out", { final = true, lun = lun_field(), itt = itt, ttt = r2t.ttt, expstatsn = c.expstatsn, datasn = 1, _data = data })
			return c:finish(itt, data)
		end)
	end,
}

-- A write that breaks a rule must not end with GOOD.
local function bad_write(section, name, clauses, what, changes, f, level)
	case {
		section = section, name = name, clauses = clauses, what = what, destructive = true, family = "bad-write", level = level,
		run = function(t)
			local c = t:scratch(changes)
			c.size = 4096 // c.block * c.block
			f(c, write10(c.lba, 4096 // c.block))
			for _ = 1, 8 do
				local pdu, why = c:recv()
				if why == "closed" or pdu and pdu._kind == "reject" then return end
				if why == "timeout" then return end -- the target still waits for correct data
				if pdu._kind == "scsi_response" then
					if pdu.status == 0 then fail("the WRITE ends with GOOD") end
					return
				end
			end
		end,
	}
end

local function begin_write(c, cdb)
	local itt = c:command { cdb = cdb, write = c.size }
	return itt, c:expect("r2t", { itt = itt })
end

local function one_data_out(c, itt, ttt, f)
	local r = { final = true, lun = lun_field(), itt = itt, ttt = ttt, expstatsn = c.expstatsn, _data = ("x"):rep(c.size) }
	for k, v in pairs(f or {}) do r[k] = v end
	c:send("data_out", r)
end

bad_write("11.8", "wrong-offset", "11.8 #2", "A Data-Out with another offset than its R2T does not make a write GOOD.", { ImmediateData = "No" },
	function(c, cdb)
		local itt, r2t = begin_write(c, cdb)
		one_data_out(c, itt, r2t.ttt, { offset = 512 })
	end)

bad_write("11.8", "too-long", "11.8 #3 #4", "A Data-Out that is longer than its R2T does not make a write GOOD.", { ImmediateData = "No" },
	function(c, cdb)
		local itt, r2t = begin_write(c, cdb)
		one_data_out(c, itt, r2t.ttt, { _data = ("x"):rep(c.size + 512) })
	end)

bad_write("11.8", "too-short", "11.8 #3", "A sequence of Data-Outs that ends before all data of its R2T came does not make a write GOOD.", { ImmediateData = "No" },
	function(c, cdb)
		local itt, r2t = begin_write(c, cdb)
		one_data_out(c, itt, r2t.ttt, { _data = ("x"):rep(c.size - 512) })
	end)

bad_write("7.9", "wrong-datasn", "7.9 #2", "A Data-Out with a wrong DataSN does not make a write GOOD.", { ImmediateData = "No" },
	function(c, cdb)
		local itt, r2t = begin_write(c, cdb)
		one_data_out(c, itt, r2t.ttt, { datasn = 7 })
	end)

bad_write("11.7.4", "wrong-ttt", "11.7.4", "A Data-Out with a tag that the target has not given does not make a write GOOD.", { ImmediateData = "No" },
	function(c, cdb)
		local itt, r2t = begin_write(c, cdb)
		one_data_out(c, itt, r2t.ttt ~ 0x5a5a)
	end, "SHOULD")

bad_write("13.10", "unsolicited-forbidden", "11.8 #1", "Unsolicited Data-Outs with InitialR2T=Yes do not make a write GOOD.",
	{ ImmediateData = "No", InitialR2T = "Yes" }, function(c, cdb)
		local itt = c:command { cdb = cdb, write = c.size, final = false }
		one_data_out(c, itt, NO_TAG)
	end)

bad_write("13.11", "immediate-forbidden", "13.11", "Immediate data with ImmediateData=No do not make a write GOOD.",
	{ ImmediateData = "No", InitialR2T = "Yes" }, function(c, cdb)
		c:command { cdb = cdb, write = c.size, data = ("x"):rep(c.size) }
	end)

bad_write("13.14", "immediate-above-first-burst", "4.2.5.2 #1", "Immediate data above FirstBurstLength do not make a write GOOD.",
	{ ImmediateData = "Yes", FirstBurstLength = "512" }, function(c, cdb)
		c:command { cdb = cdb, write = c.size, data = ("x"):rep(c.size) }
	end)

bad_write("11.3.4", "immediate-above-expected", "11.3.4", "More immediate data than the expected length do not make a write GOOD.",
	{ ImmediateData = "Yes" }, function(c, cdb)
		c:command { cdb = cdb, write = c.size, data = ("x"):rep(c.size + 512) }
	end)

case {
	section = "11.8", name = "data-out-without-task", level = "SHOULD", clauses = "7.3",
	what = "A Data-Out for a task that does not exist is discarded, rejected or ends the connection; it has no status.",
	run = function(t)
		local c = t:session()
		c:send("data_out", { final = true, lun = lun_field(), itt = 0x9999, ttt = 0x1111, expstatsn = c.expstatsn, _data = ("x"):rep(512) })
		local pdu = c:recv(0.5)
		if pdu and pdu._kind == "scsi_response" then fail("a SCSI Response came") end
	end,
}

case {
	section = "11.4.5.2", name = "write-underflow", clauses = "11.4.5.2 #3 #4", destructive = true,
	what = "A write of one block with an expected length of two ends with U and the difference.",
	run = function(t)
		local c = t:scratch { ImmediateData = "No" }
		local r = c:scsi({ cdb = write10(c.lba, 1), write = 2 * c.block }, ("x"):rep(2 * c.block))
		if r.status ~= 0 then unsupported("the target refuses such a command: status %02xh", r.status) end
		equal(r.underflow, true, "U")
		equal(r.residual, c.block, "the residual count")
	end,
}

-- ---- digests ----

case {
	section = "13.1", name = "digests-in-use", clauses = "13.1 #2 #3",
	what = "With digests each PDU of the full feature phase has them, and they are right.",
	run = function(t)
		local c = t:session { HeaderDigest = "CRC32C", DataDigest = "CRC32C" }
		if not (c.header_digest and c.data_digest) then unsupported("the target does not agree to CRC32C") end
		c:ready()
		for n = 1, 9 do c:ping(engine.random(n)) end
		local r = c:scsi { cdb = (read_capacity()), read = 8 }
		local _, block = string.unpack(">I4I4", r.data)
		equal(c:scsi({ cdb = read10(0, 4), read = 4 * block }).status, 0, "the status")
		c:logout()
	end,
}

case {
	section = "7.8", name = "bad-header-digest", clauses = "7.8 #1",
	what = "A PDU with a bad header digest has no effect: it ends the connection or is discarded.",
	run = function(t)
		local c = t:session { HeaderDigest = "CRC32C" }
		if not c.header_digest then unsupported("the target does not agree to CRC32C") end
		c:request("nop_out", { ttt = NO_TAG, _data = "ping", _bad_header_digest = true })
		local pdu = c:recv()
		if pdu and pdu._kind == "nop_in" then fail("the target answers") end
	end,
}

case {
	section = "7.8", name = "bad-data-digest", clauses = "7.8 #2",
	what = "A PDU with a bad data digest is rejected with Data (payload) digest error (02h) and discarded; or the connection ends.",
	run = function(t)
		local c = t:session { DataDigest = "CRC32C" }
		if not c.data_digest then unsupported("the target does not agree to CRC32C") end
		c:request("nop_out", { ttt = NO_TAG, _data = "ping", _bad_data_digest = true })
		c:expect_reject(0x02, true)
	end,
}

case {
	section = "7.8", name = "bad-data-digest-of-a-write", clauses = "7.8 #2 #3", destructive = true,
	what = "Data with a bad digest are not written.",
	run = function(t)
		local c = t:scratch { DataDigest = "CRC32C", ImmediateData = "No" }
		if not c.data_digest then unsupported("the target does not agree to CRC32C") end
		local before = c:scsi({ cdb = read10(c.lba, 1), read = c.block }).data
		local itt = c:command { cdb = write10(c.lba, 1), write = c.block }
		local r2t = c:expect("r2t", { itt = itt })
		c:send("data_out", { final = true, lun = lun_field(), itt = itt, ttt = r2t.ttt, expstatsn = c.expstatsn, _bad_data_digest = true,
			_data = engine.random(c.block) })
		for _ = 1, 3 do
			local pdu = c:recv(1)
			if not pdu then break end
			if pdu._kind == "scsi_response" and pdu.status == 0 then fail("the WRITE ends with GOOD") end
		end
		local d = t:unit()
		local after = d:scsi({ cdb = read10(c.lba, 1), read = c.block }).data
		if after ~= before then fail("the unit has the bad data") end
	end,
}
