# SPDX-License-Identifier: BSD-2-Clause
"""A lying target whose sessions have several connections (RFC 7143 §4.2.2). It
shares no code with openiser. CmdSN is counted for the session, StatSN for each
connection; commands are executed in the order of their CmdSN."""
import struct
import threading

from fake_target import DATA_OUT, R_LOGIN, SCSI, Conn, keys_of, text_of
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
        self.conns, self.order = [], []
        self.turn = threading.Condition()
        self.ended = False


class SessionConn(Conn):
    """A connection whose ExpCmdSN is that of its session."""
    session, cid = None, 0

    @property
    def expcmdsn(self):
        return self.session.expcmdsn if self.session else self.login_sn

    @expcmdsn.setter
    def expcmdsn(self, _):
        pass

    login_sn = 1


class McsTarget(LyingTarget):
    grants = 4
    refuse = None       # status of each further login
    join_tsih = None    # a lie: TSIH in the response to a further login

    def __init__(self, lie=lambda c: False, **more):
        self.sessions, self.lock = [], threading.Lock()
        super().__init__(lie, **more)

    def _accept(self):
        while True:
            try:
                sock = self.listener.accept()[0]
            except OSError:
                return
            sock.settimeout(patience(30))
            conn = SessionConn(sock)
            conn.sending = threading.Lock()
            self.conns.append(conn)
            threading.Thread(target=self._serve, args=(conn,),
                             daemon=True).start()

    def _serve(self, c):
        super()._serve(c)
        if c.session:  # ErrorRecoveryLevel 0: the session ends with it
            with c.session.turn:
                c.session.ended = True
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
            "MaxConnections=%d" % min(asked, self.grants)) + self.keys,
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
        c.login_response(head, text_of("MaxRecvDataSegmentLength=65536"),
                         tsih=self.join_tsih or tsih)

    def other(self, c):
        """Another connection of the session of c."""
        return next((x for x in c.session.conns if x is not c), None)

    def scsi(self, c, head, data):
        session, sn = c.session, int.from_bytes(head[24:28], "big")
        with session.turn:
            if not session.turn.wait_for(
                    lambda: session.ended or session.expcmdsn == sn,
                    patience(20)):
                self.seen.append("CmdSN %d never came" % session.expcmdsn)
                raise EOFError("a hole")
            if session.ended:
                raise EOFError("the session has ended")
            session.order.append((sn, c.cid))
            session.expcmdsn += 1
            session.turn.notify_all()
        super().scsi(c, head, data)
