# SPDX-License-Identifier: Apache-2.0
"""Record the stories beside each other in the sandbox that is up, and write them down.

``python -m magnum.tests.functional.k8s_capi_helm.recording [STORY ...]``; the files replace those
that the unit tests have (``magnum/tests/unit/drivers/k8s_capi_helm/recordings``). It ends with 1 if
one of them could not be told to its end; that one is not written. Those of another Cluster API than
the sandbox's usual one are in a directory of its release, such as ``capi-1.10``.
"""

from __future__ import annotations

import argparse
import concurrent.futures
from pathlib import Path
import sys

from magnum.tests.functional.k8s_capi_helm.recording.stories import STORIES, Story
from magnum.tests.functional.k8s_capi_helm.sandbox import setting
from sandbox.management.releases import Providers

PLACE = Path(__file__).resolve().parents[3] / "unit/drivers/k8s_capi_helm/recordings"


def _tell(kind: type[Story]) -> bool:
    story = kind()
    story.tell()
    if story.stream.trouble:
        sys.stderr.write(f"{story.name}: {story.stream.trouble}\n")
        story.stream.write(Path(".stages") / f"{story.name}.broken.jsonl.gz")
        return False
    path = _place() / f"{story.name}.jsonl.gz"
    sys.stdout.write(f"{path}: {story.stream.write(path) // 1024} KiB\n")
    return True


def _place() -> Path:
    """Where the recordings of the sandbox's Cluster API are."""
    capi = Providers.of(setting.state()).capi
    if capi == Providers().capi:
        return PLACE
    return PLACE / "capi-{}.{}".format(*capi.minor)


def main() -> int:
    by_name = {one.name: one for one in STORIES}
    parser = argparse.ArgumentParser(prog="recording", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("stories", nargs="*", choices=[[], *by_name], metavar="STORY")
    wanted = parser.parse_args().stories or list(by_name)
    setting.state()
    with concurrent.futures.ThreadPoolExecutor(len(wanted)) as pool:
        told = list(pool.map(_tell, [by_name[name] for name in wanted]))
    return 0 if all(told) else 1


if __name__ == "__main__":
    sys.exit(main())
