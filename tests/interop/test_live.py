# SPDX-License-Identifier: BSD-2-Clause
"""What initiators that we did not write see of a change of a running iserd: libiscsi, by its library."""
import ctypes
import re

from harness import main
from test_verbs import A, B, Live


class Libiscsi:
    """A session of libiscsi at one LUN."""

    def __init__(self, portal, target, lun=0, name="iqn.2026-01.org.example:libiscsi"):
        lib = self.lib = ctypes.CDLL("libiscsi.so.7")
        for f in ("iscsi_create_context", "iscsi_testunitready_sync", "iscsi_inquiry_sync", "iscsi_readcapacity16_sync",
                  "iscsi_reportluns_sync"):
            getattr(lib, f).restype = ctypes.c_void_p
        lib.iscsi_get_error.restype = ctypes.c_char_p
        self.lun = lun
        self.context = ctypes.c_void_p(lib.iscsi_create_context(name.encode()))
        lib.iscsi_set_targetname(self.context, target.encode())
        lib.iscsi_set_session_type(self.context, 2)  # ISCSI_SESSION_NORMAL
        lib.iscsi_set_noautoreconnect(self.context, 1)
        assert lib.iscsi_full_connect_sync(self.context, portal.encode(), lun) == 0, lib.iscsi_get_error(self.context)

    def close(self):
        self.lib.iscsi_logout_sync(self.context)
        self.lib.iscsi_destroy_context(self.context)

    def attention(self):
        """The name and code of the unit attention of TEST UNIT READY, as libiscsi reads them; None: the unit is ready."""
        task = self.lib.iscsi_testunitready_sync(self.context, self.lun)
        assert task, self.lib.iscsi_get_error(self.context)
        status = ctypes.c_int.from_address(task).value  # the first member of struct scsi_task
        self.lib.scsi_free_scsi_task(ctypes.c_void_p(task))
        if status == 0:
            return None
        text = self.lib.iscsi_get_error(self.context).decode()
        assert "UNIT_ATTENTION" in text, text
        return int(re.search(r"\((0x[0-9a-f]{4})\)", text)[1], 16)

    def attentions(self):
        found = []
        while True:
            found.append(self.attention())
            if found[-1] is None:
                return found[:-1]


CAPACITY, MODES, INQUIRY, LUNS, POWER_ON = 0x2a09, 0x2a01, 0x3f03, 0x3f0e, 0x2900


class Attentions(Live):
    def session(self, target, lun=0, **more):
        s = Libiscsi(self.d.portal, target, lun, **more)
        self.addCleanup(s.close)
        s.attentions()
        return s

    def test_replaced_unit_spc4_6_6_1_sbc3_4_5(self):
        """lun replace: INQUIRY DATA HAS CHANGED, with another size also CAPACITY DATA HAS CHANGED, at every nexus of the LUN and
        at no other one."""
        self.iserctl("lun", "add", A + "/1", "store=ram:1M", "backstore=side")
        first, second = self.session(A), self.session(A, name="iqn.2026-01.org.example:second")
        side, other = self.session(A, 1, name="iqn.2026-01.org.example:side"), self.session(B)
        self.iserctl("lun", "replace", A + "/0", "store=ram:1M", "backstore=same")
        for s in first, second:
            self.assertEqual(s.attentions(), [INQUIRY])
        self.iserctl("lun", "replace", A + "/0", "store=ram:3M", "backstore=large")
        for s in first, second:
            self.assertEqual(s.attentions(), [CAPACITY, INQUIRY])
        self.iserctl("lun", "replace", A + "/0", "store=ram:3M", "block-size=4096", "backstore=blocks")
        for s in first, second:
            self.assertEqual(s.attentions(), [CAPACITY, INQUIRY])
        self.iserctl("lun", "replace", A + "/0", "store=ram:3M", "block-size=4096", "read-only=yes", "backstore=fixed")
        for s in first, second:
            self.assertEqual(s.attentions(), [MODES, INQUIRY])
        self.assertEqual((side.attentions(), other.attentions()), ([], []))
        # a new LUN is another matter
        self.iserctl("lun", "add", A + "/2", "backstore=two")
        self.assertEqual((first.attentions(), side.attentions(), other.attentions()), ([LUNS], [LUNS], []))


if __name__ == "__main__":
    main()
