#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""iSER, by both ways in, beside iSCSI on the same port."""
import unittest

from harness import main
from test_iser import BUILT, OwnCases


@BUILT
class FromTheStart(OwnCases, unittest.TestCase):
    way = "rdma"


@BUILT
class BehindLogin(OwnCases, unittest.TestCase):
    way = "stream"


if __name__ == "__main__":
    main()
