-- SPDX-License-Identifier: BSD-2-Clause
-- rfc7143_06_login.lua: RFC 7143 §4.2.4, §6.3, §11.12, §11.13: the login.
rfc "7143"

-- ---- the first PDU ----

for _, kind in ipairs { "nop_out", "scsi_command", "task_request", "text_request", "data_out", "logout_request", "snack" } do
	case {
		section = "4.2.4", name = "first-pdu-" .. kind, family = "first-pdu-", clauses = "4.2.4 #4",
		what = "A target closes a connection whose first PDU is not a Login Request but a " .. kind .. ".",
		why = "Before the login the peer is not authenticated: no other request may have an effect.",
		run = function(t)
			local c = t:connect()
			c:send(kind, { immediate = true, final = true, itt = 1 })
			local pdu, why = c:recv()
			if pdu then fail("the target answers with %s", pdu._kind) end
			equal(why, "closed", "the state of the connection")
		end,
	}
end

for _, kind in ipairs { "nop_out", "scsi_command", "text_request", "logout_request" } do
	case {
		section = "4.2.4", name = "during-login-" .. kind, family = "during-login-", clauses = "4.2.4 #5",
		what = "A target answers a " .. kind .. " within the login with the status 020bh, and closes.",
		why = "The login is one task; the initiator learns from the status what was wrong.",
		run = function(t)
			local c = t:connect()
			c:begin_login()
			c:send(kind, { immediate = true, final = true, itt = 2, cmdsn = c.cmdsn, expstatsn = c.expstatsn })
			c:expect_refused(0x020b)
			c:expect_closed()
		end,
	}
end

case {
	section = "4.2.4", name = "second-login", clauses = "4.2.4 #3",
	what = "A login does not begin again on a connection in the full feature phase.",
	why = "A second login could change the identity of a session that is in use.",
	run = function(t)
		local c = t:session()
		c.tsih = 0
		c:login_request(OPERATIONAL, FULL_FEATURE, names())
		local pdu = c:recv()
		if pdu and pdu._kind == "login_response" and pdu.status == 0 then fail("the target accepts a second login") end
	end,
}

-- ---- names ----

case {
	section = "6.3", name = "no-initiator-name", clauses = "6.3 #2",
	what = "A login without InitiatorName is refused with 0207h, Missing Parameter.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, { "TargetName=" .. options.target, "SessionType=Normal" })
		c:expect_refused(0x0207)
		c:expect_closed()
	end,
}

case {
	section = "6.3", name = "no-target-name", clauses = "6.3 #3",
	what = "A login to a normal session without TargetName is refused with 0207h, Missing Parameter.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, { "InitiatorName=" .. options.initiator, "SessionType=Normal" })
		c:expect_refused(0x0207)
		c:expect_closed()
	end,
}

case {
	section = "11.13.5", name = "unknown-target", clauses = "11.13.5 #3",
	what = "A login to a target that does not exist is refused with 0203h, Not found, and the target closes.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, { "InitiatorName=" .. options.initiator,
			"TargetName=iqn.2026-01.org.example:no-such-target-" .. math.random(1000000), "SessionType=Normal" })
		c:expect_refused { 0x0203, 0x0202, 0x0201 }
		c:expect_closed()
	end,
}

case {
	section = "11.13.5", name = "session-type", level = "SHOULD",
	what = "A login with a SessionType that does not exist is refused with 0209h, Session type not supported.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, { "InitiatorName=" .. options.initiator, "TargetName=" .. options.target, "SessionType=Holiday" })
		c:expect_refused { 0x0209, 0x0200 }
	end,
}

case {
	section = "4.2.7.1", name = "name-of-223-bytes", clauses = "4.2.7.1 #3",
	what = "A target receives an initiator name of 223 bytes.",
	open = true,
	run = function(t)
		local c = t:connect()
		local name = "iqn.2026-01.org.example:" .. ("x"):rep(199)
		equal(#name, 223, "the length of the name")
		c:login_request(OPERATIONAL, FULL_FEATURE, { "InitiatorName=" .. name, "SessionType=Discovery" })
		local r = c:expect("login_response")
		if r.status ~= 0 and r.status ~= 0x0202 then fail("the login ends with status %04xh", r.status) end
	end,
}

case {
	section = "6.1", name = "keys-of-8192-bytes", clauses = "6.1 #4",
	what = "A target receives 8192 bytes of keys in a negotiation.",
	open = true,
	run = function(t)
		local c = t:connect()
		local keys = keys_encode(names())
		for i = 1, 30 do keys = keys .. ("X-org.example.k%02d="):format(i) .. ("v"):rep(200) .. "\0" end
		c:login_request(OPERATIONAL, nil, keys)
		local r = c:login_response()
		equal(r.cont, false, "C of the Login Response")
		c:login_request(OPERATIONAL, FULL_FEATURE, {})
		c:login_response { transit = true }
	end,
}

-- ---- the stages ----

case {
	section = "6.3", name = "operational-only", clauses = "6.3 #4", open = true,
	what = "A login of one request in the operational stage ends with FullFeaturePhase and a TSIH.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, names())
		local r = c:login_response { transit = true, csg = OPERATIONAL, nsg = FULL_FEATURE }
		if r.tsih == 0 then fail("the final response has TSIH 0 (§11.13.3)") end
	end,
}

case {
	section = "6.3.2", name = "security-to-full-feature", clauses = "6.3.2 #3", open = true,
	what = "A transition from SecurityNegotiation to FullFeaturePhase brings the TSIH.",
	run = function(t)
		local c = t:connect()
		c:login_request(SECURITY, FULL_FEATURE, names("AuthMethod=None"))
		local r = c:login_response { transit = true, csg = SECURITY }
		equal(r.keys.AuthMethod, "None", "AuthMethod")
		if r.nsg == OPERATIONAL then return end -- the target may choose an earlier stage
		equal(r.nsg, FULL_FEATURE, "NSG")
		if r.tsih == 0 then fail("the final response has TSIH 0") end
	end,
}

case {
	section = "6.3", name = "nsg-not-above", clauses = "6.3 #7", open = true,
	what = "The target does not choose a stage above the NSG of the initiator.",
	run = function(t)
		local c = t:connect()
		c:login_request(SECURITY, OPERATIONAL, names("AuthMethod=None"))
		local r = c:login_response { csg = SECURITY }
		if r.transit then equal(r.nsg, OPERATIONAL, "NSG") end
		equal(r.tsih, 0, "TSIH of a response that is not final (§11.13.3)")
	end,
}

case {
	section = "6.3", name = "no-transition-unasked", clauses = "6.3 #9", open = true,
	what = "A target answers a request without T without T.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, nil, names())
		c:login_response { transit = false }
		c:login_request(OPERATIONAL, FULL_FEATURE, {})
		c:login_response { transit = true, nsg = FULL_FEATURE }
	end,
}

case {
	section = "6.3", name = "stage-goes-back", clauses = "6.3 #5", open = true,
	what = "SecurityNegotiation after LoginOperationalNegotiation is refused.",
	why = "An authentication after the negotiation would come too late for what was negotiated.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, nil, names())
		c:login_response()
		c:login_request(SECURITY, OPERATIONAL, { "AuthMethod=None" })
		c:expect_refused(0x02)
		c:expect_closed()
	end,
}

for csg, names_of in pairs { [0] = { 0 }, [1] = { 0, 1 } } do
	for _, nsg in ipairs(names_of) do
		case {
			section = "6.3", name = "transition-" .. csg .. "-to-" .. nsg, family = "transition-", open = true,
			what = ("A request with T from stage %d to stage %d is refused: the table of transitions has no such row."):format(csg, nsg),
			run = function(t)
				local c = t:connect()
				c:login_request(csg, nsg, names(csg == 0 and "AuthMethod=None" or nil))
				c:expect_refused(0x02)
			end,
		}
	end
end

case {
	section = "11.12.3", name = "csg-2", clauses = "11 #3",
	what = "CSG 2 is reserved: the login is refused.",
	run = function(t)
		local c = t:connect()
		c:login_request(2, FULL_FEATURE, names())
		c:expect_refused(0x02, true)
	end,
}

case {
	section = "11.12.3", name = "nsg-2", clauses = "11 #3",
	what = "NSG 2 with T is reserved: the login is refused.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, 2, names())
		c:expect_refused(0x02, true)
	end,
}

case {
	section = "11.12.3", name = "csg-3", clauses = "6.3 #4",
	what = "A login that begins in FullFeaturePhase is refused.",
	run = function(t)
		local c = t:connect()
		c:login_request(FULL_FEATURE, FULL_FEATURE, names())
		c:expect_refused(0x02, true)
	end,
}

case {
	section = "11.12.2", name = "c-with-t", clauses = "11.12.2 #1",
	what = "A Login Request with C and T is refused.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, names(), { cont = true })
		c:expect_refused(0x02, true)
	end,
}

case {
	section = "6.3", name = "security-key-in-operational", level = "SHOULD",
	what = "A key of the security stage in the operational stage is a protocol error.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, names("AuthMethod=None"))
		c:expect_refused(0x02)
	end,
}

case {
	section = "6.3", name = "operational-key-in-security", level = "SHOULD",
	what = "A key of the operational stage in the security stage is a protocol error.",
	run = function(t)
		local c = t:connect()
		c:login_request(SECURITY, OPERATIONAL, names("AuthMethod=None", "InitialR2T=No"))
		c:expect_refused(0x02)
	end,
}

for field, clauses in pairs { isid = "11.12", tsih = "11.12.6 #3 #4", cid = "11.12.7 #1 #2" } do
	case {
		section = clauses:match("%S+"), name = "changes-within-the-login-" .. field, family = "changes", clauses = clauses, open = true,
		what = "A " .. field:upper() .. " that changes within a login has no effect: the first one counts, or the login is refused.",
		run = function(t)
			local c = t:connect()
			c:login_request(OPERATIONAL, nil, names())
			c:login_response()
			c:login_request(OPERATIONAL, FULL_FEATURE, {}, { [field] = field == "isid" and new_isid() or 0x1234 })
			local r, why = c:recv()
			if why == "timeout" then fail("no answer") end
			if not r or r.status ~= 0 then return end
			equal(r.isid, c.isid, "ISID")
			if field == "tsih" then equal(r.tsih ~= 0x1234, true, "that the target makes a TSIH of its own") end
		end,
	}
end

-- ---- order and repetition ----

for _, key in ipairs { "InitiatorName=iqn.2026-01.org.example:other", "TargetName=iqn.2026-01.org.example:other", "MaxBurstLength=4096",
	"HeaderDigest=None", "InitialR2T=Yes", "ErrorRecoveryLevel=0", "MaxRecvDataSegmentLength=4096" } do
	local name = key:match("^%w+")
	case {
		section = "6.3", name = "twice-" .. name, family = "twice-", clauses = "6.3 #10 #11", open = true,
		what = "A login in which " .. name .. " comes twice is refused as an error of the initiator.",
		why = "Otherwise the two ends may take different values of the two.",
		run = function(t)
			local c = t:connect()
			local first = names()
			if not name:find("Name") then first[#first + 1] = key end
			c:login_request(OPERATIONAL, nil, first)
			c:login_response()
			c:login_request(OPERATIONAL, FULL_FEATURE, { key })
			c:expect_refused(0x02)
			c:expect_closed()
		end,
	}
end

case {
	section = "6.3", name = "twice-in-one-request", clauses = "6.3 #10 #11",
	what = "A login in which a key comes twice in one request is refused.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, names("MaxBurstLength=4096", "MaxBurstLength=8192"))
		c:expect_refused(0x02)
	end,
}

-- ---- numbers and identifiers ----

case {
	section = "11.12.8", name = "first-cmdsn", clauses = "11.12.8 #1",
	what = "ExpCmdSN begins with the CmdSN of the leading login, which does not advance it.",
	run = function(t)
		local c = t:connect()
		c.cmdsn = 0xfffffffe
		local r = c:login(names(), operational())
		equal(r.expcmdsn, 0xfffffffe, "ExpCmdSN")
		for _ = 1, 4 do c:ping() end -- over the end of the numbers
	end,
}

case {
	section = "11.13.4", name = "statsn-counts", clauses = "4.2.2.2 #3", open = true,
	what = "StatSN advances by 1 with each Login Response.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, nil, names())
		local first = c:login_response().statsn
		c:login_request(OPERATIONAL, nil, {})
		equal(c:login_response().statsn, (first + 1) & NO_TAG, "StatSN")
	end,
}

case {
	section = "11.12", name = "itt-of-the-login", clauses = "6.3 #1", open = true,
	what = "Each Login Response has the tag and the ISID of the request.",
	run = function(t)
		local c = t:connect()
		c.itt = 0x12345678
		c:login_request(OPERATIONAL, nil, names())
		local r = c:login_response { itt = 0x12345678 }
		equal(r.isid, c.isid, "ISID")
		c:login_request(OPERATIONAL, FULL_FEATURE, {})
		c:login_response { itt = 0x12345678, transit = true }
	end,
}

case {
	section = "11.12.4", name = "version-min-1", clauses = "11.12.4 #1",
	what = "A login with Version-min 1 is refused with 0205h, Unsupported version.",
	run = function(t)
		local c = t:connect()
		c:login_request(options.password and SECURITY or OPERATIONAL, nil, names(), { vmin = 1, vmax = 1 })
		c:expect_refused(0x0205)
	end,
}

case {
	section = "11.12.4.1", name = "version-max-1", clauses = "11.12.4 #1", open = true,
	what = "A login with Version-max 1 and Version-min 0 is answered with version 0.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, names(), { vmin = 0, vmax = 1 })
		local r = c:login_response()
		equal(r.vactive, 0, "Version-active")
	end,
}

case {
	section = "6.3.1", name = "unknown-tsih", clauses = "11.12.6 #4",
	what = "A login with a TSIH that the target has not given is refused with 020ah, Session does not exist.",
	run = function(t)
		local c = t:connect()
		c.tsih = 0x7ffe
		c:login_request(OPERATIONAL, FULL_FEATURE, names())
		c:expect_refused { 0x020a, 0x0201 }
		c:expect_closed()
	end,
}

case {
	section = "6.3.1", name = "portal-group-tag", clauses = "6.3.1 #1", open = true,
	what = "The first Login Response has TargetPortalGroupTag, a number below 65536.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, names())
		local tag = c:login_response().keys.TargetPortalGroupTag
		if not tag or not tonumber(tag) or tonumber(tag) > 65535 then fail("TargetPortalGroupTag is %s", tostring(tag)) end
	end,
}

case {
	section = "6.3.1", name = "portal-group-tag-discovery", clauses = "6.3.1 #1", open = true,
	what = "The first Login Response of a discovery session has TargetPortalGroupTag, too.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, { "InitiatorName=" .. options.initiator, "SessionType=Discovery" })
		if not c:login_response().keys.TargetPortalGroupTag then fail("TargetPortalGroupTag is missing") end
	end,
}

case {
	section = "6.3.5", name = "reinstatement", clauses = "6.3.5 #1",
	what = "A login with the ISID of a session and TSIH 0 ends that session and makes a new one.",
	why = "An initiator that lost its state begins again in this way; its old session must not go on.",
	run = function(t)
		local a = t:session()
		local b = t:connect()
		b.isid = a.isid
		b:login(names(), operational())
		a:expect_closed()
		b:ping()
	end,
}

case {
	section = "6.3.5", name = "other-isid-is-another-session", clauses = "6.3.5 #1",
	what = "A login with another ISID leaves the sessions of the same initiator alone.",
	run = function(t)
		local a, b = t:session(), t:session()
		a:ping()
		b:ping()
	end,
}

case {
	section = "11.12.10", name = "no-nul-at-the-end", clauses = "6.1 #1", open = true,
	what = "A login whose last key has no NUL is not accepted as if it had one.", level = "SHOULD",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, (keys_encode(names("MaxBurstLength=4096")):sub(1, -2)))
		local r, why = c:recv()
		if r and r.status == 0 then fail("the target accepts the login") end
		if why == "timeout" then fail("no answer") end
	end,
}

case {
	section = "6.1", name = "key-without-value", level = "SHOULD",
	what = "A text without '=' in a Login Request is refused.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, names("MaxBurstLength"))
		c:expect_refused(0x02, true)
	end,
}

case {
	section = "6.2", name = "continuation", clauses = "6.2 #2", open = true,
	what = "A target answers a Login Request with C with an empty response, and takes the keys as one text.",
	run = function(t)
		local c = t:connect()
		local keys = keys_encode(names("MaxBurstLength=65536"))
		c:login_request(OPERATIONAL, nil, keys:sub(1, -10), { cont = true })
		local r = c:login_response { transit = false, cont = false }
		equal(#r._data, 0, "the length of the data of the response to C")
		c:login_request(OPERATIONAL, FULL_FEATURE, keys:sub(-9))
		r = c:login_response { transit = true }
		equal(r.keys.MaxBurstLength, "65536", "MaxBurstLength")
	end,
}

case {
	section = "7.12", name = "half-a-login", clauses = "7.12 #2",
	what = "A login whose connection ends has no session: its TSIH and ISID are free.",
	run = function(t)
		local a = t:connect()
		a:begin_login()
		a:close()
		local b = t:connect()
		b.isid = a.isid
		b:login(names(), operational())
		b:ping()
	end,
}

case {
	section = "11.2.1.2", name = "login-without-immediate", level = "SHOULD", open = true,
	what = "Login Requests are immediate; a target does not count one without I as a command.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, names(), { immediate = false })
		local r = c:recv()
		if r and r._kind == "login_response" and r.status == 0 then equal(r.expcmdsn, c.cmdsn, "ExpCmdSN") end
	end,
}
