#!/usr/bin/env python3
"""What is installed and packaged, used as others would.

usage: check_packages.py BUILD_DIR SOURCE_DIR [--debian]

Installs the build into a folder of its own; reads the manual and the completions there; builds a small program that finds cpfit
with find_package and compares what it plans with what the installed cpfit plans. With --debian: builds the Debian packages, looks
into them, unpacks them and runs what they hold. Exit codes: 0 all of it holds, 1 something does not, 77 nothing could be checked.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

troubles = []


def check(holds, sentence):
    if not holds:
        troubles.append(sentence)
        print("FAILED:", sentence)


def run(*words, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, check=False, **more)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-3000:]}")
    return done.stdout


def check_completion(prefix, cpfit):
    """Bash offers what the command line takes."""
    script = prefix / "share/bash-completion/completions/cpfit"
    offers = {
        ("cpfit", "pl"): {"plan"},
        ("cpfit", "completion", ""): {"bash", "zsh", "fish"},
        ("cpfit", "topology", "sh"): {"show"},
        ("cpfit", "simulate", "--fid"): {"--fidelity"},
        ("cpfit", "runs", "list", "--d"): {"--db"},
    }
    for words, expected in offers.items():
        line = f"source '{script}'; COMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; _cpfit; " \
               "printf '%s\\n' \"${COMPREPLY[@]}\""
        offered = set(run("bash", "-c", line).split())
        check(offered == expected, f"completion of {words}: {sorted(offered)}, expected {sorted(expected)}")
    for shell, path in (("zsh", "share/zsh/vendor-completions/_cpfit"), ("fish", "share/fish/vendor_completions.d/cpfit.fish")):
        check((prefix / path).read_text() == run(cpfit, "completion", shell), f"{path} is not what the program prints")
        if shutil.which(shell):
            run(shell, "-n", prefix / path)


def check_manual(prefix):
    for program in ("cpfit", "cpfit-bench", "cpfit-gui"):
        page = prefix / f"share/man/man1/{program}.1"
        if not (prefix / "bin" / program).exists():
            continue
        check(page.exists(), f"{program} has no manual page")
        if shutil.which("groff"):
            said = subprocess.run(["groff", "-Kutf8", "-man", "-Tutf8", "-ww", str(page)], capture_output=True, text=True, check=False)
            check(said.stderr == "", f"groff about {page.name}: {said.stderr[:400]}")


def check_consumer(prefix, work, source):
    """find_package(cpfit) from outside the tree; its figures are those of the installed program."""
    build = work / "consumer"
    run("cmake", "-S", source / "tests/package/consumer", "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
        "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    run("cmake", "--build", build)
    scenario = prefix / "share/cpfit/examples/llama3-8b-128k-1node.toml"
    recipe, device, seconds = run(build / "consumer", scenario).splitlines()
    ship = json.loads(run(prefix / "bin/cpfit", "plan", scenario, "--json"))["verdict"]["ship"]
    check(recipe == ship["recipe"], f"the consumer ships {recipe}, cpfit {ship['recipe']}")
    check(abs(float(seconds.split()[0]) - ship["step_seconds"]) <= 1e-6 * ship["step_seconds"],
          f"the consumer's step is {seconds}, cpfit's {ship['step_seconds']}")
    components = sum(ship["memory"]["components"].values())
    check(abs(float(device.split()[0]) - components) < 1, f"the consumer's memory is {device}, cpfit's {components}")


def check_debian(build, work):
    packages = work / "debian"
    run("cpack", "-G", "DEB", "-B", packages, cwd=build)
    found = {p.name.split("_")[0]: p for p in packages.glob("*.deb")}
    wanted = {"cpfit", "cpfit-bench", "libcpfit-dev"} | ({"cpfit-gui"} if (build / "gui/cpfit-gui").exists() else set())
    check(set(found) == wanted, f"packages {sorted(found)}, expected {sorted(wanted)}")
    root = work / "root"
    depends = {}
    for name, path in found.items():
        run("dpkg-deb", "-x", path, root)
        depends[name] = run("dpkg-deb", "-f", path, "Depends")
        print(f"{name}: {path.stat().st_size / 2**20:.1f} MiB, depends on {depends[name].strip()}")
    check("libsqlite3-0" in depends["cpfit"], "cpfit's package does not depend on SQLite")
    for heavy in ("libqt6", "libopenmpi", "libcu", "libnccl"):
        check(heavy not in depends["cpfit"], f"cpfit's package depends on {heavy}")
    check("libqt6widgets6" in depends.get("cpfit-gui", "libqt6widgets6"), "cpfit-gui's package does not depend on Qt")
    run(root / "usr/bin/cpfit", "presets", "gpus")
    check((root / "usr/share/man/man1/cpfit.1.gz").exists() or (root / "usr/share/man/man1/cpfit.1").exists(), "no manual")


def main():
    build, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory(prefix="cpfit-package-") as folder:
        work = pathlib.Path(folder)
        if "--debian" in sys.argv:
            if not shutil.which("dpkg-shlibdeps"):
                print("waived: no dpkg-shlibdeps here (dpkg-dev)")
                return 77
            check_debian(build, work)
        else:
            prefix = work / "installed"
            run("cmake", "--install", build, "--prefix", prefix)
            check_completion(prefix, prefix / "bin/cpfit")
            check_manual(prefix)
            check_consumer(prefix, work, source)
    return 1 if troubles else 0


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C.UTF-8"
    sys.exit(main())
