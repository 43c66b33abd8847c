"""tools/layers.sh sees every kind of include that points the wrong way."""
import os
import subprocess
import tempfile
import unittest

LAYERS = os.path.join(os.environ["SIGNALBOX_SOURCE"], "tools", "layers.sh")


def layers(**files):
    """Check a small house; keys are paths with '__' for '/' and no '.c'."""
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = os.path.join(root, "src", name.replace("__", "/") + ".c")
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text + "\n")
        run = subprocess.run([LAYERS, root], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
    return run.stdout, run.returncode


class Layers(unittest.TestCase):
    def assert_seen(self, complaint, **files):
        out, status = layers(**files)
        self.assertIn(complaint, out)
        self.assertNotEqual(status, 0)

    def assert_fine(self, **files):
        self.assertEqual(layers(**files), ("", 0))

    def test_the_real_house_is_fine(self):
        root = os.environ["SIGNALBOX_SOURCE"]
        run = subprocess.run([LAYERS, root], stdout=subprocess.PIPE,
                             text=True, check=False)
        self.assertEqual((run.stdout, run.returncode), ("", 0))

    def test_down_is_fine(self):
        self.assert_fine(
            walk='#include "choose/choose.h"\n#include "gate/gate.h"',
            main='#include "server.h"\n#include "config/config.h"\n#include <uv.h>',
            calls__agents='#include "registry/registry.h"\n#include "walk.h"',
            cli__route='#include "calls/calls.h"\n#include "config/config.h"',
            deliver__queue='#include "net/net.h"\n#include <uv.h>',
            registry__registry='#include "embed/embed.h"',
            choose__score='#include "index/index.h"\n#include <math.h>\n'
                          '#include "choose/internal.h"\n'
                          '#include "base/arena.h"\n#include "model/msg.h"',
            config__table='#include "config/internal.h"\n'
                          '#include "base/json.h"\n'
                          '#include "model/agent.h"\n  x = getenv("X");')

    def test_tests_may_include_what_they_like(self):
        self.assert_fine(choose__choose_test='#include "gate/gate.h"')

    def test_up(self):
        self.assert_seen("src/base/a.c:2: base may not include net",
                         base__a='\n#include "net/net.h"')
        self.assert_seen("store may not include watch",
                         store__a='#include "watch/watch.h"')
        self.assert_seen("net may not include deliver",
                         net__a='# include "deliver/deliver.h"')

    def test_up_to_the_top(self):
        self.assert_seen("net may not include config",
                         net__a='#include "config/config.h"')
        self.assert_seen("gate may not include walk",
                         gate__a='#include "walk.h"')
        self.assert_seen("deliver may not include calls",
                         deliver__a='#include "calls/tasks.h"')
        self.assert_seen("config may include only base and model",
                         config__table='#include "net/net.h"')

    def test_what_is_asked_knows_nobody_who_asks(self):
        for room in ("broker", "route", "lessons"):
            for outer in ("calls/calls", "hub/hub", "walk"):
                self.assert_seen(
                    f"{room} may not include {outer.split('/')[0]}",
                    **{room + "__a": f'#include "{outer}.h"'})
            self.assert_fine(**{room + "__a": '#include "speak/speak.h"'})

    def test_sideways(self):
        self.assert_seen("choose may not include gate",
                         choose__a='#include "gate/gate.h"')
        self.assert_seen("task may not include ledger",
                         task__a='#include "ledger/ledger.h"')

    def test_behind_the_door(self):
        self.assert_seen("from outside, net is net/net.h",
                         deliver__a='#include "net/internal.h"')
        self.assert_seen("from outside, choose is choose/choose.h",
                         walk='#include "choose/score.h"')

    def test_pure_rooms_reach_nothing(self):
        for header in "uv.h", "time.h", "sys/socket.h", "sqlite3.h":
            self.assert_seen(f"gate is pure and may not include <{header}>",
                             gate__a=f"#include <{header}>")
        for header in "base/loop.h", "base/clock.h", "base/log.h":
            self.assert_seen(f"speak is pure and may not include {header}",
                             speak__a=f'#include "{header}"')
        self.assert_seen("choose is pure and registry is not",
                         choose__a='#include "registry/registry.h"')

    def test_unknown_rooms_and_paths(self):
        self.assert_seen("attic is in no layer", attic__a="")
        self.assert_seen("attic is no room", net__a='#include "attic/a.h"')
        self.assert_seen("write includes from src/",
                         net__a='#include "../base/str.h"')
        self.assert_seen("write includes from src/",
                         net__a='#include "internal.h"')

    def test_only_config_reads_the_environment(self):
        self.assert_seen("only config/ reads the environment",
                         net__a='    x = getenv("HOME");')
