-- SPDX-License-Identifier: BSD-2-Clause
-- rfc7143_12_chap.lua: RFC 7143 §6.3.2, §9.2, §12: authentication. Most cases need a URL with user and password.
rfc "7143"

case {
	section = "6.3.2", name = "unknown-method", clauses = "6.3.2 #1 #2",
	what = "AuthMethod with methods that the target does not have is answered with Reject, or the login fails.",
	run = function(t)
		local c = t:connect()
		c:login_request(SECURITY, nil, names("AuthMethod=Z-org.example.magic"))
		local r = c:recv()
		if not r then fail("no answer") end
		if r.status ~= 0 then return end
		equal(keys_decode(r._data).AuthMethod, "Reject", "AuthMethod")
	end,
}

case {
	section = "6.3.2", name = "first-supported-method", clauses = "6.3.2 #1", open = true,
	what = "Of a list the target takes the first method that it supports and may use: None where it needs no other.",
	run = function(t)
		local c = t:connect()
		c:login_request(SECURITY, OPERATIONAL, names("AuthMethod=Z-org.example.magic,None"))
		equal(c:login_response().keys.AuthMethod, "None", "AuthMethod")
	end,
}

case {
	section = "12.1", name = "none-where-chap-is-required", chap = true, clauses = "6.3 #6",
	what = "AuthMethod=None is refused where the target requires CHAP.",
	run = function(t)
		local c = t:connect()
		c:login_request(SECURITY, OPERATIONAL, names_of_stranger("AuthMethod=None"))
		local r = c:recv()
		if r and r.status == 0 and r.transit then fail("the target skips the authentication") end
	end,
}

case {
	section = "6.3.1", name = "skip-security-where-chap-is-required", chap = true, clauses = "6.3 #6",
	what = "A login that begins in the operational stage is refused with 0201h where the target requires CHAP.",
	run = function(t)
		local c = t:connect()
		c:login_request(OPERATIONAL, FULL_FEATURE, names_of_stranger())
		c:expect_refused { 0x0201, 0x0202 }
		c:expect_closed()
	end,
}

case {
	section = "12.1.3", name = "transit-before-the-response", chap = true, clauses = "6.3 #6",
	what = "T in the request with CHAP_A does not end the security stage: the authentication is not done.",
	run = function(t)
		local c = t:connect()
		c:login_request(SECURITY, nil, names_of_stranger("AuthMethod=CHAP"))
		c:login_response()
		c:login_request(SECURITY, FULL_FEATURE, { "CHAP_A=5" })
		local r = c:recv()
		if r and r._kind == "login_response" and r.status == 0 and r.transit then fail("the target ends the stage without CHAP_R") end
	end,
}

case {
	section = "12.1.3", name = "method-abandoned", chap = true, clauses = "6.3 #6",
	what = "After AuthMethod=CHAP a request with T and without CHAP keys does not end the security stage.",
	run = function(t)
		local c = t:connect()
		c:login_request(SECURITY, nil, names_of_stranger("AuthMethod=CHAP"))
		c:login_response()
		c:login_request(SECURITY, OPERATIONAL, {})
		local r = c:recv()
		if r and r._kind == "login_response" and r.status == 0 and r.transit then fail("the target ends the stage without CHAP_R") end
	end,
}

case {
	section = "12.1.3", name = "challenge", chap = true, clauses = "12.1.3 #2",
	what = "The target answers CHAP_A with CHAP_A, CHAP_I (one byte) and CHAP_C (1 to 1024 bytes).",
	run = function(t)
		local k = t:connect():chap_challenge()
		equal(k.CHAP_A, "5", "CHAP_A")
		if not tonumber(k.CHAP_I) or tonumber(k.CHAP_I) > 255 then fail("CHAP_I=%s", tostring(k.CHAP_I)) end
		local n = #binary(k.CHAP_C)
		if n < 1 or n > 1024 then fail("CHAP_C has %d bytes", n) end
	end,
}

case {
	section = "12.1.3", name = "challenges-differ", chap = true,
	what = "No challenge comes twice.",
	why = "Who has seen the answer to a challenge could use it again.",
	run = function(t)
		local seen = {}
		for _ = 1, 8 do
			local c = t:connect()
			local challenge = c:chap_challenge().CHAP_C
			if seen[challenge] then fail("a challenge came twice") end
			seen[challenge] = true
			c:close()
		end
	end,
}

for _, algorithm in ipairs { "5", "6", "7", "8" } do
	case {
		section = "12.1.3", name = "algorithm-" .. algorithm, family = "algorithm-", chap = true, clauses = "12.1.3 #2",
		level = algorithm == "5" and "MUST" or "MAY",
		what = "CHAP with algorithm " .. algorithm .. " (5 MD5, 6 SHA1, 7 SHA-256, 8 SHA3-256) authenticates.",
		run = function(t)
			local c = t:connect()
			c:login_request(SECURITY, nil, names("AuthMethod=CHAP"))
			c:login_response()
			c:login_request(SECURITY, nil, { "CHAP_A=" .. algorithm })
			local r = c:recv()
			if not r or r.status ~= 0 then unsupported("the target does not have the algorithm") end
			local k = keys_decode(r._data)
			if k.CHAP_A ~= algorithm then unsupported("CHAP_A=%s", tostring(k.CHAP_A)) end
			c:chap_answer(k)
			c:login_response { transit = true }
		end,
	}
end

case {
	section = "12.1.3", name = "unknown-algorithms", chap = true, clauses = "12.1.3 #2",
	what = "CHAP_A with algorithms that do not exist is refused with 0201h, Authentication failure.",
	run = function(t)
		local c = t:connect()
		c:login_request(SECURITY, nil, names_of_stranger("AuthMethod=CHAP"))
		c:login_response()
		c:login_request(SECURITY, nil, { "CHAP_A=77,78" })
		c:expect_refused { 0x0201, 0x0202 }
		c:expect_closed()
	end,
}

case {
	section = "12.1.3", name = "wrong-password", chap = true, clauses = "9.2 #4, 12.1.3 #4",
	what = "A wrong CHAP_R is refused with 0201h, Authentication failure, and the target closes.",
	run = function(t)
		local c = t:connect()
		c:chap_answer(c:chap_challenge(names_of_stranger()), OPERATIONAL, options.password .. "x")
		c:expect_refused { 0x0201, 0x0202 }
		c:expect_closed()
	end,
}

case {
	section = "12.1.3", name = "wrong-user", chap = true, clauses = "9.2 #4",
	what = "A CHAP_N that the target does not know is refused with 0201h.",
	run = function(t)
		local c = t:connect()
		local k = c:chap_challenge(names_of_stranger())
		c:login_request(SECURITY, OPERATIONAL, { "CHAP_N=no-such-user", "CHAP_R=" .. chap_response(k.CHAP_A, k.CHAP_I, options.password, binary(k.CHAP_C)) })
		c:expect_refused { 0x0201, 0x0202 }
	end,
}

for word, keys in pairs { ["no-name"] = { "CHAP_R=0x00112233445566778899aabbccddeeff" }, ["no-response"] = { "CHAP_N=x" } } do
	case {
		section = "9.2", name = "chap-" .. word, family = "chap-", chap = true, clauses = "9.2 #3",
		what = "The answer to a challenge lacks a key (" .. word .. "): the login is refused.",
		run = function(t)
			local c = t:connect()
			c:chap_challenge(names_of_stranger())
			c:login_request(SECURITY, OPERATIONAL, keys)
			c:expect_refused(0x02)
		end,
	}
end

for word, value in pairs { short = "0x00", long = "0x" .. ("ab"):rep(1025), text = "secret", empty = "", odd = "0xzz", decimal = "12345" } do
	case {
		section = "12.1.3", name = "response-" .. word, family = "response-", chap = true, clauses = "12.1.3 #7",
		what = "A CHAP_R of the wrong form (" .. word .. ") is refused.",
		run = function(t)
			local c = t:connect()
			c:chap_challenge(names_of_stranger())
			c:login_request(SECURITY, OPERATIONAL, { "CHAP_N=" .. options.user, "CHAP_R=" .. value })
			c:expect_refused(0x02, true)
		end,
	}
end

case {
	section = "9.2.1", name = "challenge-reflected", chap = true, clauses = "9.2.1 #11",
	what = "A target closes if the initiator sends the target's own challenge as its challenge.",
	why = "Otherwise an initiator without the secret lets the target compute the answer to its own challenge.",
	run = function(t)
		local c = t:connect()
		local k = c:chap_challenge(names_of_stranger())
		c:chap_answer(k, OPERATIONAL, nil, { "CHAP_I=" .. k.CHAP_I, "CHAP_C=" .. k.CHAP_C })
		local r = c:recv()
		if r and r._kind == "login_response" and r.status == 0 and keys_decode(r._data).CHAP_R then fail("the target answers its own challenge") end
	end,
}

case {
	section = "12.1.3", name = "mutual", chap = true, clauses = "12.1.3 #5",
	what = "A target that is asked to prove itself answers with CHAP_N and CHAP_R, or refuses the login.",
	run = function(t)
		local c = t:connect()
		c:chap_answer(c:chap_challenge(), OPERATIONAL, nil, { "CHAP_I=9", "CHAP_C=" .. hex(engine.random(16)) })
		local r = c:recv()
		if not r then fail("no answer") end
		if r.status ~= 0 then return end
		local k = keys_decode(r._data)
		if not k.CHAP_N or not k.CHAP_R then fail("the target does not prove itself, and goes on") end
	end,
}

case {
	section = "12.1.3", name = "login", chap = true, clauses = "9.2.1 #1",
	what = "A login with CHAP ends in the full feature phase.",
	run = function(t)
		t:session():ping()
	end,
}

case {
	section = "12", name = "chap-keys-without-method", clauses = "12 #1", level = "SHOULD",
	what = "CHAP_A without AuthMethod is a protocol error.",
	run = function(t)
		local c = t:connect()
		c:login_request(SECURITY, nil, names("CHAP_A=5"))
		local r = c:recv()
		if r and r._kind == "login_response" and r.status == 0 and keys_decode(r._data).CHAP_C then fail("the target sends a challenge") end
	end,
}
