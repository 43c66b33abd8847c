"""Delegations of the C client, beside a hub that is a script, and with
the real server."""
import os
import unittest

from sdk_delegation_cases import DelegationCases, Planted
from sdk_hiring_cases import HiringCases

DRIVER = os.environ["SBC_DRIVER"]
PLANTED = os.environ["SBC_DRIVER_PLANTED"]


class C(DelegationCases, unittest.TestCase):
    command = [DRIVER]
    hook = "sbc_on_delegation"
    can_hold = False  # it is had when the hook returns
    hears_alone = False  # what streams goes to the hook


class CHires(HiringCases, unittest.TestCase):
    command = [DRIVER]


class Mistaken(DelegationCases, Planted, unittest.TestCase):
    """A client that books a delegation when it is accepted."""
    command = [PLANTED]
    for name in [n for n in dir(DelegationCases) if n.startswith("test_")]:
        locals()[name] = None
