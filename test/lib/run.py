"""Run one file of unittest tests: `run.py FILE [NAME-PART]`.

Prints what failed, names of what was skipped and why, and closes with
`N passed, N failed, N skipped`.
"""
import importlib.util
import os
import shutil
import sys
import tempfile
import unittest

SHM, SHM_BYTES = "/dev/shm", 2 << 30


def chosen(suite, part):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from chosen(test, part)
        elif part in test.id():
            yield test


class Result(unittest.TextTestResult):
    """Counts each test once, however many of its subtests failed."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.bad = set()
        self.passed = 0

    def stopTest(self, test):
        super().stopTest(test)
        if not any(test is t for t, _ in self.skipped):
            self.passed += test.id() not in self.bad

    def addError(self, test, err):
        super().addError(test, err)
        self.bad.add(test.id())

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.bad.add(test.id())

    def addUnexpectedSuccess(self, test):
        super().addUnexpectedSuccess(test)
        self.bad.add(test.id())

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.bad.add(test.id())


def main(path, part=""):
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    sys.dont_write_bytecode = True
    # In memory where there is room: what a disk keeps is for test/crash to say.
    if os.access(SHM, os.W_OK) and shutil.disk_usage(SHM).free > SHM_BYTES:
        tempfile.tempdir = SHM
    spec = importlib.util.spec_from_file_location("test", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["test"] = module
    spec.loader.exec_module(module)

    tests = unittest.defaultTestLoader.loadTestsFromModule(module)
    runner = unittest.TextTestRunner(stream=sys.stdout, resultclass=Result,
                                     verbosity=2)
    result = runner.run(unittest.TestSuite(chosen(tests, part)))
    for test, why in result.skipped:
        print(f"skipped {test.id()}: {why}")
    print(f"{result.passed} passed, {len(result.bad)} failed, "
          f"{len(result.skipped)} skipped")
    return bool(result.bad) or not result.passed + len(result.skipped)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
