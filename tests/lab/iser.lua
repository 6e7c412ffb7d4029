-- SPDX-License-Identifier: BSD-2-Clause
-- iSER over iWARP for tshark, which supports iSER over InfiniBand only: takes the payload
-- of RDMAP Sends, shows the iSER header (RFC 7145 9) and passes the PDU after it on.
local iser = Proto("iser_iwarp", "iSER over iWARP")
local kinds = { [1] = "iSCSI control", [2] = "Hello", [3] = "HelloReply" }
local fields = {
  kind = ProtoField.uint8("iser_iwarp.kind", "Opcode", base.HEX, kinds, 0xf0),
  wsv = ProtoField.bool("iser_iwarp.wsv", "Write STag valid", 8, nil, 0x08),
  rsv = ProtoField.bool("iser_iwarp.rsv", "Read STag valid", 8, nil, 0x04),
  wstag = ProtoField.uint32("iser_iwarp.wstag", "Write STag", base.HEX),
  wbase = ProtoField.uint64("iser_iwarp.wbase", "Write base offset", base.HEX),
  rstag = ProtoField.uint32("iser_iwarp.rstag", "Read STag", base.HEX),
  rbase = ProtoField.uint64("iser_iwarp.rbase", "Read base offset", base.HEX),
  pdu = ProtoField.bytes("iser_iwarp.pdu", "iSCSI PDU"),
}
iser.fields = fields

-- RFC 7143 11.2.1.2
local opcodes = {
  [0x00] = "NOP-Out", [0x01] = "SCSI Command", [0x02] = "Task Management Request", [0x03] = "Login Request",
  [0x04] = "Text Request", [0x05] = "Data-Out", [0x06] = "Logout Request", [0x10] = "SNACK",
  [0x20] = "NOP-In", [0x21] = "SCSI Response", [0x22] = "Task Management Response", [0x23] = "Login Response",
  [0x24] = "Text Response", [0x25] = "Data-In", [0x26] = "Logout Response", [0x31] = "R2T", [0x32] = "Async", [0x3f] = "Reject",
}
local TEXT_RESPONSE = 0x24
local HEADER, BHS = 28, 48

local function is_iser(tvb)
  if tvb:len() < HEADER + BHS then return false end
  local first = tvb(0, 1):uint()
  return bit.band(first, 0xf0) == 0x10 and bit.band(first, 0x03) == 0 and tvb(1, 3):uint() == 0
end

local function show_header(tvb, tree)
  local t = tree:add(iser, tvb(0, HEADER))
  for _, name in ipairs({ "kind", "wsv", "rsv" }) do t:add(fields[name], tvb(0, 1)) end
  t:add(fields.wstag, tvb(4, 4))
  t:add(fields.wbase, tvb(8, 8))
  t:add(fields.rstag, tvb(16, 4))
  t:add(fields.rbase, tvb(20, 8))
  return t
end

local found, iscsi = pcall(Dissector.get, "iscsi")

local function dissect(tvb, pinfo, tree)
  if not is_iser(tvb) then return false end
  local t = show_header(tvb, tree)
  local opcode = bit.band(tvb(HEADER, 1):uint(), 0x3f)
  -- The iscsi dissector takes the address in a Text Response for plain iSCSI from then
  -- on, and MPA would not see the next connection.
  if found and opcode ~= TEXT_RESPONSE then
    iscsi:call(tvb(HEADER):tvb(), pinfo, tree)
  else
    t:add(fields.pdu, tvb(HEADER))
  end
  pinfo.cols.protocol = "iSER"
  pinfo.cols.info:prepend("iSER " .. (opcodes[opcode] or string.format("opcode 0x%02x", opcode)) .. " | ")
  return true
end
iser:register_heuristic("iwarp_ddp_rdmap", dissect)
