# SPDX-License-Identifier: BSD-2-Clause
"""A lying target whose sessions have several connections (RFC 7143 §4.2.2). It
shares no code with openiser. CmdSN is counted for the session, StatSN for each
connection; commands are executed in the order of their CmdSN."""
import threading

from fake_target import (DATA_OUT, LOGIN, LOGOUT, NOP_OUT, R_LOGOUT, R_TMF, SCSI, TMF,
                         Conn, keys_of, text_of)
from harness import patience
from lying_target import LyingTarget

# Keys of the leading connection only (RFC 7143 §13, "Use: LO").
LEADING_ONLY = ("MaxConnections", "InitialR2T", "ImmediateData",
                "MaxBurstLength", "FirstBurstLength", "DefaultTime2Wait",
                "DefaultTime2Retain", "MaxOutstandingR2T", "DataPDUInOrder",
                "DataSequenceInOrder", "ErrorRecoveryLevel", "SessionType",
                "TaskReporting", "iSCSIProtocolLevel", "RDMAExtensions")


class Session:
    def __init__(self, tsih, isid):
        self.tsih, self.isid, self.expcmdsn = tsih, isid, 1
        self.conns, self.order, self.kept = [], [], {}
        self.turn = threading.Condition()
        self.ended = False


class SessionConn(Conn):
    """A connection whose ExpCmdSN is that of its session."""
    session, cid, alive, logged_out = None, 0, True, False

    def __init__(self, sock):
        super().__init__(sock)
        self.sending = threading.Lock()

    @property
    def expcmdsn(self):
        return self.session.expcmdsn if self.session else self.login_sn

    @expcmdsn.setter
    def expcmdsn(self, _):
        pass

    login_sn = 1


class McsTarget(LyingTarget):
    Conn = SessionConn
    grants, level = 4, 0
    refuse = None       # status of each further login
    join_tsih = None    # a lie: TSIH in the response to a further login
    join_keys = text_of("MaxRecvDataSegmentLength=65536")

    def __init__(self, lie=lambda c: False, **more):
        self.sessions, self.lock = [], threading.Lock()
        super().__init__(lie, **more)

    def _serve(self, c):
        super()._serve(c)
        if not c.session:
            return
        with c.session.turn:
            c.alive = False
            # ErrorRecoveryLevel 0: the session ends with its first connection
            c.session.ended |= self.level < 2 or not any(x.alive for x in c.session.conns)
            c.session.turn.notify_all()

    def login(self, c, head, data):
        tsih = int.from_bytes(head[14:16], "big")
        c.isid, c.cid, c.tsih = head[8:14], int.from_bytes(head[20:22], "big"), tsih
        if head[1] & 3 != 3:
            c.login_response(head, tsih=tsih)
            return
        if tsih:
            self.join(c, head, tsih)
            return
        with self.lock:
            c.session = Session(len(self.sessions) + 5, c.isid)
            self.sessions.append(c.session)
        c.session.conns.append(c)
        asked = int(c.keys.get("MaxConnections", 1))
        c.login_response(head, text_of(
            "TargetPortalGroupTag=1",
            "MaxConnections=%d" % min(asked, self.grants),
            "ErrorRecoveryLevel=%d" % min(int(c.keys.get("ErrorRecoveryLevel", 0)), self.level),
            "DefaultTime2Wait=" + c.keys.get("DefaultTime2Wait", "2")) + self.keys,
            tsih=c.session.tsih)

    def join(self, c, head, tsih):
        if self.refuse:
            c.login_response(head, tsih=tsih, flags=0, status=self.refuse)
            raise EOFError("refused")
        with self.lock:
            session = [s for s in self.sessions if s.tsih == tsih][0]
        if session.isid != c.isid:
            self.seen.append("ISID of CID %d" % c.cid)
        c.session = session
        session.conns.append(c)
        c.login_response(head, self.join_keys, tsih=self.join_tsih or tsih)

    def other(self, c):
        """Another connection of the session of c."""
        return next((x for x in c.session.conns if x is not c), None)

    # ---- ErrorRecoveryLevel 2 (RFC 7143 §7.1.4.3) ----

    reassign_answer = 0

    def logout(self, c, head):
        """Logout for recovery of another CID; returns False for other reasons."""
        if head[1] & 0x7f != 2:
            return False
        cid = int.from_bytes(head[20:22], "big")
        lost = [x for x in c.session.conns if x.cid == cid and x is not c]
        with c.session.turn:
            for x in lost:
                x.alive, x.logged_out = False, True
            c.session.turn.notify_all()
        self.seen.append("logout for recovery of %d" % cid)
        c.send(R_LOGOUT, 0x80, head[16:20], ttt=bytes(4), bytes2=bytes([0, 0 if lost else 1]))
        return True

    def tmf(self, c, head):
        """TASK REASSIGN: the task begins again on this connection."""
        tag = head[20:24]
        if head[1] & 0x7f != 8:
            c.send(R_TMF, 0x80, head[16:20], bytes2=b"\0\5")
            return
        kept = c.session.kept.get(tag)
        self.seen.append("reassign")
        answer = self.reassign_answer if kept else 1
        c.send(R_TMF, 0x80, head[16:20], bytes2=bytes([0, answer]), ttt=bytes(4))
        if kept:
            super().scsi(c, *kept)

    def serve(self, c):
        while self.dispatch(c, *c.recv()):
            pass

    def dispatch(self, c, op, head, data):
        """Handles one PDU; returns False after the last one."""
        if op == LOGIN:
            c.keys.update(keys_of(data))
            self.login(c, head, data)
        elif op == SCSI:
            self.scsi(c, head, data)
        elif op == NOP_OUT:
            self.nop(c, head, data)
        elif op == TMF:
            self.tmf(c, head)
        elif op == DATA_OUT:
            self.early.setdefault(head[16:20], []).append(data)
        elif op == LOGOUT and not self.logout(c, head):
            self.seen.append("logout")
            c.send(R_LOGOUT, 0x80, head[16:20], ttt=bytes(4))
            return False
        return True

    def data_out(self, conn, itt):
        while not self.early.get(itt):
            if not self.dispatch(conn, *conn.recv()):
                raise EOFError("logged out")
        return self.early[itt].pop(0)

    def scsi(self, c, head, data):
        session, sn = c.session, int.from_bytes(head[24:28], "big")
        with session.turn:
            if not session.turn.wait_for(
                    lambda: session.ended or c.logged_out or session.expcmdsn >= sn,
                    patience(20)):
                self.seen.append("CmdSN %d never came" % session.expcmdsn)
                raise EOFError("a hole")
            if session.ended or c.logged_out:
                raise EOFError("the connection has ended")
            if session.expcmdsn > sn:  # a duplicate (§4.2.2.1)
                return
            session.order.append((sn, c.cid))
            session.expcmdsn += 1
            session.turn.notify_all()
            # until the end: ExpStatSN is not looked at (§11.4.4)
            session.kept[head[16:20]] = (head, data)
        super().scsi(c, head, data)
