"""tools/layers.sh sees every kind of include that points the wrong way."""
import os
import subprocess
import tempfile
import unittest

LAYERS = os.path.join(os.environ["SIGNALBOX_SOURCE"], "tools", "layers.sh")


def layers(**files):
    """Check a small tree; keys are paths with '__' for '/' and no '.c'."""
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
            walk__walk='#include "choose/layers/choose.h"\n#include "gate/rules/rules.h"',
            main='#include "server/server.h"\n#include "api/internal.h"\n#include <uv.h>',
            api__agents='#include "registry/registry.h"\n#include "walk/walk.h"',
            deliver__queue='#include "net/server/net.h"\n#include <uv.h>',
            registry__registry='#include "embed/embed.h"',
            choose__layers__score='#include "registry/index/index.h"\n#include <math.h>\n'
                                  '#include "choose/layers/internal.h"\n'
                                  '#include "base/arena.h"\n#include "model/msg.h"',
            server__config__table='#include "server/config/internal.h"\n'
                                  '#include "base/json.h"\n'
                                  '#include "model/agent.h"\n  x = getenv("X");')

    def test_tests_may_include_what_they_like(self):
        self.assert_fine(choose__choose_test='#include "walk/walk.h"')

    def test_up(self):
        self.assert_seen("src/base/a.c:2: base may not include net",
                         base__a='\n#include "net/server/net.h"')
        self.assert_seen("store may not include watch",
                         store__a='#include "watch/watch.h"')
        self.assert_seen("net may not include deliver",
                         net__a='# include "deliver/deliver.h"')

    def test_up_to_the_top(self):
        self.assert_seen("gate may not include walk",
                         gate__a='#include "walk/walk.h"')
        self.assert_seen("deliver may not include api",
                         deliver__a='#include "api/api.h"')
        self.assert_seen("api may not include server",
                         api__a='#include "server/server.h"')
        self.assert_seen("server/config may not include net",
                         server__config__table='#include "net/server/net.h"')
        self.assert_seen("there is no module cli",
                         server__a='#include "cli/cli.h"')
        self.assert_seen("only main.c is outside the modules",
                         walk='#include "base/str.h"')

    def test_what_is_asked_knows_nobody_who_asks(self):
        for module in ("gate", "choose", "learn", "delegation"):
            for outer in ("api/api", "walk/walk"):
                self.assert_seen(
                    f"{module} may not include {outer.split('/')[0]}",
                    **{module + "__a": f'#include "{outer}.h"'})
            self.assert_fine(**{module + "__a": '#include "speak/speak.h"'})

    def test_sideways(self):
        self.assert_seen("task may not include ledger",
                         task__a='#include "ledger/ledger.h"')
        self.assert_seen("gate may not include choose",
                         gate__a='#include "choose/route.h"')

    def test_behind_the_door(self):
        self.assert_seen("net/server/internal.h is private to net",
                         deliver__a='#include "net/server/internal.h"')
        self.assert_seen("choose/layers/score.h is private to choose",
                         walk__walk='#include "choose/layers/score.h"')

    def test_pure_rooms_reach_nothing(self):
        for header in "uv.h", "time.h", "sys/socket.h", "sqlite3.h":
            self.assert_seen(
                f"gate/rules is pure and may not include <{header}>",
                gate__rules__a=f"#include <{header}>")
        for header in "base/loop.h", "base/clock.h", "base/log.h":
            self.assert_seen(f"speak is pure and may not include {header}",
                             speak__a=f'#include "{header}"')
        self.assert_seen("choose/layers is pure and registry is not",
                         choose__layers__a='#include "registry/registry.h"')

    def test_unknown_rooms_and_paths(self):
        self.assert_seen("attic is not in the row", attic__a="")
        self.assert_seen("there is no module attic",
                         net__a='#include "attic/a.h"')
        self.assert_seen("write includes from src/",
                         net__a='#include "../base/str.h"')
        self.assert_seen("write includes from src/",
                         net__a='#include "internal.h"')

    def test_only_config_reads_the_environment(self):
        self.assert_seen("only server/config reads the environment",
                         net__a='    x = getenv("HOME");')
