"""Drives our server with the real, unmodified `RemoteRuntimeBuilder` of OpenHands 0.62.

Started by `run --builder` inside the environment that `setup` makes, beside a Docker Engine:

    ZAREBA_BIN=STATIC_PROGRAM scripts/docker-engine e2e/foreign/run --builder

Prints one line per case and a closing line; exits 0 when nothing failed.
"""

import argparse
import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path

from openhands_client import explain, prepare_environment

BASE = 'zareba-test/debian'
REPOSITORY = f'zareba/built-{uuid.uuid4().hex[:8]}'
CASES = []


def case(check):
    CASES.append(check)
    return check


def equal(actual, expected) -> None:
    assert actual == expected, f'got {actual!r}, expected {expected!r}'


def context(provider, dockerfile: str) -> str:
    place = provider.scratch / uuid.uuid4().hex
    (place / 'code').mkdir(parents=True)
    (place / 'Dockerfile').write_text(dockerfile)
    (place / 'code' / ('long' * 40)).write_text('far')
    (place / 'code' / 'link').symlink_to('/etc/hostname')
    return str(place)


def builder(provider):
    from openhands.runtime.builder.remote import RemoteRuntimeBuilder

    return RemoteRuntimeBuilder(provider.url, provider.key)


@case
def an_image_is_built_found_and_started(provider) -> None:
    from openhands.events.action import CmdRunAction

    names = [f'{REPOSITORY}:source', f'{REPOSITORY}:lock', f'{REPOSITORY}:versioned']
    theirs = builder(provider)
    equal([theirs.image_exists(name) for name in names], [False] * 3)
    dockerfile = f'FROM {BASE}\nCOPY code /code\nRUN cat /code/long* > /made\n'
    equal(theirs.build(context(provider, dockerfile), names), names[0])
    equal([theirs.image_exists(name) for name in names], [True] * 3)
    runtime = provider.runtime(f'sid-{uuid.uuid4().hex}', runtime_container_image=names[1])
    asyncio.run(runtime.connect())
    try:
        equal(runtime.run(CmdRunAction(command='cat /made')).content, 'far')
    finally:
        runtime.close()


@case
def a_failing_build_says_why(provider) -> None:
    from openhands.core.exceptions import AgentRuntimeBuildError

    for dockerfile, word in (
        (f'FROM {BASE}\nRUN echo because of this; exit 4\n', 'because of this'),
        ('FROM not/allowed\n', 'allowed images'),
        ('RUN true\n', 'no FROM'),
    ):
        try:
            builder(provider).build(context(provider, dockerfile), [f'{REPOSITORY}:wrong'])
        except AgentRuntimeBuildError as error:
            assert word in str(error), error
        else:
            raise AssertionError(f'this was built: {dockerfile}')


@case
def an_image_of_the_operator_stays_what_it_is(provider) -> None:
    from openhands.core.exceptions import AgentRuntimeBuildError

    try:
        builder(provider).build(context(provider, f'FROM {BASE}\nRUN true\n'), [BASE])
    except AgentRuntimeBuildError as error:
        assert 'not built for you' in str(error), error
    else:
        raise AssertionError(f'{BASE} was replaced')


@case
def their_three_names_are_reused(provider) -> None:
    """Their own decision, with a build folder of ours in place of minutes of installation."""
    from openhands.runtime.utils import runtime_build

    prefix = provider.call('GET', '/registry_prefix').json()['registry_prefix']
    os.environ['OH_RUNTIME_RUNTIME_IMAGE_REPO'] = f'{prefix}/runtime'
    seen = []

    def prepare(folder, base, build_from, extra_deps, enable_browser=True) -> None:
        seen.append(build_from.value)
        Path(folder, 'Dockerfile').write_text(f'FROM {base}\nRUN echo {build_from.value} >> /steps\n')

    # Only what makes the folder is replaced: the sources and lock files of a development tree are
    # no part of the package.
    runtime_build.prep_build_folder = prepare
    runtime_build.get_hash_for_lock_files = lambda base, enable_browser=True: f'lock{locks[0]}'
    runtime_build.get_hash_for_source_files = lambda: f'source{sources[0]}'
    locks, sources = [1], [1]

    def build() -> str:
        return runtime_build.build_runtime_image(BASE, builder(provider))

    first = build()
    equal((build(), seen), (first, ['scratch']))
    sources[0] = 2
    build()
    locks[0] = 2
    build()
    equal(seen, ['scratch', 'lock', 'versioned'])


def remove_images() -> None:
    engine = f'unix://{os.environ["ZAREBA_TEST_DOCKER"]}'
    docker = ['docker', '--host', engine]
    listed = subprocess.run([*docker, 'images', '--format', '{{.Repository}}:{{.Tag}}'], capture_output=True, text=True, check=True)
    built = [name for name in listed.stdout.split() if name.startswith('zareba/')]
    if built:
        subprocess.run([*docker, 'rmi', '--force', *built], capture_output=True, check=True)


def run_cases(arguments: argparse.Namespace, scratch: Path) -> tuple[int, int]:
    from provider import Started

    os.environ |= {
        'DOCKER_HOST': f'unix://{os.environ["ZAREBA_TEST_DOCKER"]}',
        'ZAREBA_DOCKER_IMAGE': BASE,
        'ZAREBA_DOCKER_BUILD': 'true',
        'ZAREBA_DOCKER_ALLOWED_IMAGES': f'["{BASE}", "zareba/*"]',
    }
    binary = Path(shutil.copy2(arguments.binary, scratch / 'zareba'))
    provider = Started(scratch, binary, 'docker')
    passed = failed = 0
    try:
        for check in CASES:
            if arguments.only not in check.__name__:
                continue
            try:
                check(provider)
            except Exception as error:  # noqa: BLE001 - a case may fail in any way their client can
                failed += 1
                print(f'FAIL {check.__name__}: {explain(error)}', flush=True)
            else:
                passed += 1
                print(f'ok {check.__name__}', flush=True)
    finally:
        provider.close()
        remove_images()
    return passed, failed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--binary', type=Path, required=True, help='a static zareba binary')
    parser.add_argument('--only', default='', help='run only cases whose name contains this')
    arguments = parser.parse_args()
    if 'ZAREBA_TEST_DOCKER' not in os.environ:
        print('ZAREBA_TEST_DOCKER names no Engine: run this with scripts/docker-engine')
        return 77
    with tempfile.TemporaryDirectory(prefix='zareba-builder-') as scratch:
        scratch_path = Path(scratch).resolve()
        prepare_environment(scratch_path)
        passed, failed = run_cases(arguments, scratch_path)
    print(f'{passed} passed, {failed} failed')
    return 1 if failed or passed == 0 else 0


if __name__ == '__main__':
    sys.exit(main())
