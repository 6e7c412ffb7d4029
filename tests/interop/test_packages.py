#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The files in packaging/: unit, symbols, container and RPM. make deb-test builds and installs the packages."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import ISER, ISERCTL, ISERD, main, run, sparse

try:
    import yaml
except ImportError:
    yaml = None

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(ISER))))
PACKAGING = os.path.join(TOP, "packaging")
analyze = unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is missing: install systemd")


def read(*names):
    with open(os.path.join(PACKAGING, *names)) as f:
        return f.read()


class Unit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.unit = os.path.join(folder.name, "iserd.service")
        # the unit of the build, with the program of the build
        text = read("systemd", "iserd.service.in").replace("@bindir@/iserd", "/bin/true")
        with open(self.unit, "w") as f:
            f.write(text)
        shutil.copy(os.path.join(PACKAGING, "systemd", "iserd.socket"), folder.name)
        self.drop_in = os.path.join(self.unit + ".d", "rdma.conf")
        self.folder = folder.name

    @analyze
    def test_verify(self):
        for unit in ("iserd.service", "iserd.socket"):
            done = run(["systemd-analyze", "verify", "--man=no", os.path.join(self.folder, unit)], check=False)
            ours = [line for line in done.text.splitlines() if "iserd" in line]
            self.assertEqual((done.returncode, ours), (0, []), done.text)

    @analyze
    def test_verify_with_rdma_devices(self):
        os.mkdir(os.path.dirname(self.drop_in))
        shutil.copy(os.path.join(PACKAGING, "systemd", "rdma.conf"), self.drop_in)
        self.test_verify()

    @analyze
    def test_security(self):
        """The exposure of a service with full privileges is 9.6."""
        done = run(["systemd-analyze", "security", "--offline=yes", "--threshold=20", self.unit], check=False)
        found = re.search(r"Overall exposure level for iserd.service: ([\d.]+)", done.text)
        self.assertLessEqual(float(found[1]), 2.0, done.text)
        self.assertEqual(done.returncode, 0, done.text[-500:])

    def test_no_privileges(self):
        lines = read("systemd", "iserd.service.in").splitlines()
        for line in ("User=iserd", "CapabilityBoundingSet=", "AmbientCapabilities=", "NoNewPrivileges=yes",
                     "ProtectSystem=strict", "Type=notify"):
            self.assertIn(line, lines)


class Examples(unittest.TestCase):
    def check(self, text):
        """Checks a configuration where the directory of the images is another one, which has the image."""
        with tempfile.TemporaryDirectory() as d:
            sparse(os.path.join(d, "disk.img"), 1 << 20)
            path = os.path.join(d, "iserd.yaml")
            with open(path, "w") as f:
                f.write(text.replace("/var/lib/iserd", d))
            return run([ISERCTL, "check", path], check=False)

    def test_configuration(self):
        done = self.check(read("iserd.yaml"))
        self.assertEqual(done.returncode, 0, done.text)

    def test_kubernetes(self):
        """The configuration in the ConfigMap is valid, and the pod has no privileges."""
        text = read("kubernetes", "iserd.yaml")
        lines = text.split("  iserd.yaml: |\n", 1)[1].split("\n---", 1)[0].split("\n")
        done = self.check("\n".join(line[4:] for line in lines) + "\n")
        self.assertEqual(done.returncode, 0, done.text)
        for line in ("runAsNonRoot: true", "allowPrivilegeEscalation: false", "readOnlyRootFilesystem: true",
                     "capabilities: {drop: [ALL]}", "livenessProbe:", "readinessProbe:", "startupProbe:"):
            self.assertIn(line, text)

    @unittest.skipUnless(yaml, "PyYAML is missing: install python3-yaml")
    def test_kubernetes_objects(self):
        """Each name that an object refers to exists, and so does each option and port."""
        objects = {o["kind"]: o for o in yaml.safe_load_all(read("kubernetes", "iserd.yaml"))}
        self.assertEqual(set(objects), {"ConfigMap", "PersistentVolumeClaim", "StatefulSet", "Service"})
        config = yaml.safe_load(objects["ConfigMap"]["data"]["iserd.yaml"])
        listens = {int(a.rpartition(":")[2]) for g in config["portal-groups"].values() for a in g["listen"]}
        state = objects["StatefulSet"]["spec"]
        pod = state["template"]["spec"]
        self.assertEqual(state["selector"]["matchLabels"], state["template"]["metadata"]["labels"])
        self.assertEqual(objects["Service"]["spec"]["selector"], state["template"]["metadata"]["labels"])
        self.assertEqual(state["serviceName"], objects["Service"]["metadata"]["name"])
        volumes = {v["name"]: v for v in pod["volumes"]}
        self.assertEqual(volumes["config"]["configMap"]["name"], objects["ConfigMap"]["metadata"]["name"])
        self.assertEqual(volumes["data"]["persistentVolumeClaim"]["claimName"], objects["PersistentVolumeClaim"]["metadata"]["name"])
        iserd = pod["containers"][0]
        for c in pod["containers"] + pod["initContainers"]:
            self.assertLessEqual({m["name"] for m in c["volumeMounts"]}, set(volumes))
        # writable paths of the configuration are on volumes; the root file system is read-only
        mounts = [m["mountPath"] for m in iserd["volumeMounts"] if not m.get("readOnly")]
        for path in (config["daemon"]["control"], config["daemon"]["state"], config["backstores"]["disk"]["store"]):
            self.assertTrue(any(path.startswith(m + "/") for m in mounts), path)
        # ports
        ports = {p["name"]: p["containerPort"] for p in iserd["ports"]}
        self.assertEqual(set(ports.values()), listens)
        self.assertEqual({p["targetPort"] for p in objects["Service"]["spec"]["ports"]}, set(ports))
        self.assertIn(iserd["readinessProbe"]["tcpSocket"]["port"], ports)
        # options and commands; the credential is a key of the secret
        for option in (a for a in iserd["args"] if a.startswith("--")):
            self.assertIn(option, run([ISERD, "--help"]).text)
        text = run([ISERCTL, "--help"]).text
        for probe in ("startupProbe", "livenessProbe"):
            program, option, value, method = iserd[probe]["exec"]["command"]
            self.assertEqual((program, int(value)), ("iserctl", 5))
            self.assertIn(option, text)
            self.assertRegex(text, r"(?m)^  %s " % method)
        self.assertGreater(iserd["livenessProbe"]["timeoutSeconds"], 5)
        env = {e["name"]: e["value"] for e in iserd["env"]}
        chap = next(m for m in iserd["volumeMounts"] if m["name"] == "chap")
        self.assertEqual(env["CREDENTIALS_DIRECTORY"], chap["mountPath"])
        # the user is that of the image
        self.assertIn("--uid %d" % pod["securityContext"]["runAsUser"], read("container", "Containerfile"))

    def test_the_container_has_the_packages_of_the_build(self):
        text = read("container", "Containerfile")
        with open(os.path.join(TOP, "scripts", "packages.txt")) as f:
            wanted = {line.split("#")[0].strip() for line in f} - {""}
        build = text.split("\nFROM")[1]
        self.assertFalse({p for p in wanted if p not in build.split()}, "scripts/packages.txt")


class Debian(unittest.TestCase):
    def test_the_symbols_are_those_of_the_library(self):
        """A new function needs a line in packaging/debian/libiser1.symbols, with the version that introduces it."""
        lib = os.path.join(BUILD, "src/lib/libiser.so.1")
        out = run(["nm", "-D", "--defined-only", "--with-symbol-versions", lib]).text
        exported = {w.split("@")[0] for w in re.findall(r" [TA] (\S+)", out)}
        listed = set(re.findall(r"(?m)^ (\w+)@LIBISER_1 ", read("debian", "libiser1.symbols")))
        self.assertEqual(exported ^ listed, set())

    def test_the_build_dependencies_are_those_of_the_build(self):
        control = read("debian", "control").split("Standards-Version")[0]
        with open(os.path.join(TOP, "scripts", "packages.txt")) as f:
            wanted = {line.split("#")[0].strip() for line in f} - {"", "gcc", "ninja-build"}
        self.assertFalse({p for p in wanted if not re.search(r"[ \n]%s\b" % re.escape(p), control)})

    def test_make_deb_installs_them(self):
        """And build-essential, which dpkg-buildpackage demands without a word in the control file."""
        needed = re.search(r"Build-Depends:(.*?)\n\S", read("debian", "control"), re.S)[1]
        needed = {re.match(r"\s*([\w.+-]+)", p)[1].replace("-compat", "") for p in needed.split(",")} | {"build-essential"}
        lists = ""
        for name in ("packages.txt", "packages-deb.txt"):
            with open(os.path.join(TOP, "scripts", name)) as f:
                lists += f.read()
        self.assertEqual(needed - set(lists.split()), set())

    def test_one_version(self):
        with open(os.path.join(TOP, "meson.build")) as f:
            version = re.search(r"version: '([\d.]+)'", f.read())[1]
        self.assertEqual(re.match(r"openiser \(([\d.]+)-", read("debian", "changelog"))[1], version)
        self.assertEqual(re.search(r"(?m)^Version:\s+(\S+)", read("rpm", "openiser.spec"))[1], version)


class Builds(unittest.TestCase):
    """Parts of openiser alone."""

    def targets(self, *options):
        with tempfile.TemporaryDirectory() as d:
            subprocess.run(["meson", "setup", d, TOP, "-Dtests=false", "-Dbench=false"] + list(options), check=True,
                           stdout=subprocess.DEVNULL)
            out = run(["meson", "introspect", "--installed", d]).text
        return {os.path.basename(p) for p in re.findall(r'": "([^"]+)"', out)}

    @unittest.skipUnless(shutil.which("meson"), "meson is missing")
    def test_the_library_alone(self):
        files = self.targets("-Ddaemon=false", "-Dtools=disabled", "-Dverbs=disabled")
        self.assertLessEqual({"libiser.so.1.0.0", "iser.h", "libiser.pc"}, files)
        self.assertFalse(files & {"iserd", "iserctl", "iser", "iserd.service", "rcap-verbs.so", "iserd.8", "iser.1"})

    @unittest.skipUnless(shutil.which("meson"), "meson is missing")
    def test_the_tools_alone(self):
        files = self.targets("-Ddaemon=false", "-Dtools=enabled", "-Dverbs=disabled")
        self.assertLessEqual({"iser", "iser.1"}, files)
        self.assertFalse(files & {"iserd", "iserctl", "iserd.service", "iserd.8"})

    @unittest.skipUnless(shutil.which("meson"), "meson is missing")
    def test_everything(self):
        files = self.targets("-Dverbs=auto")
        self.assertLessEqual({"iserd", "iserctl", "iser-tgtadm", "iser", "iserd.service", "iserd.socket", "iserd.conf", "iserd.yaml",
                              "iserd.8", "iser-tgtadm.8", "iserd.yaml.5", "openiser.7", "iserctl.1", "iser.1", "_iserd", "libiser.pc", "iser.h"}, files)


if __name__ == "__main__":
    main()
