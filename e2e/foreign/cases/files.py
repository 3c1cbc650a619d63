"""Reading, writing, listing and copying files."""

import io
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

from openhands.events.observation import FileReadObservation, FileWriteObservation

from . import expect
from .registry import Cases
from .sandbox import Sandbox

cases = Cases()
CASES = cases.listed

# The smallest picture there is: one transparent dot.
DOT = bytes.fromhex('47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b')


def text_of(observation, path: Path | str) -> str:
    expect.equal((type(observation), observation.path), (FileReadObservation, str(path)))
    return observation.content


@cases.case()
def writing_ends_every_line_and_reading_gives_it_back(sandbox: Sandbox) -> None:
    path = sandbox.directory / 'deep' / 'down' / 'note.txt'
    observation = sandbox.write(path, 'one\n  two\n\ndrei ü')
    expect.equal((type(observation), observation.content, observation.path), (FileWriteObservation, '', str(path)))
    expect.equal(path.read_text(), 'one\n  two\n\ndrei ü\n')
    expect.equal(text_of(sandbox.read(path), path), 'one\n  two\n\ndrei ü\n')
    expect.equal(path.stat().st_mode & 0o777, 0o664)


@cases.case()
def a_relative_path_follows_the_shell(sandbox: Sandbox) -> None:
    sandbox.output('mkdir below && cd below')
    sandbox.write('near.txt', 'here')
    path = sandbox.directory / 'below' / 'near.txt'
    expect.equal(path.read_text(), 'here\n')
    expect.equal(text_of(sandbox.read('near.txt'), path), 'here\n')
    expect.finished(sandbox.run('cat near.txt'), 'here')


@cases.case()
def a_range_of_lines_is_read(sandbox: Sandbox) -> None:
    path = sandbox.directory / 'ten.txt'
    path.write_text(''.join(f'line {n}\n' for n in range(10)))
    for start, end, first, last in ((2, 4, 2, 4), (7, -1, 7, 10), (9, 10, 8, 10), (20, 30, 8, 10), (5, 5, 5, 6)):
        expected = ''.join(f'line {n}\n' for n in range(first, last))
        expect.equal(text_of(sandbox.read(path, start=start, end=end), path), expected)


@cases.case()
def lines_are_replaced_in_the_middle(sandbox: Sandbox) -> None:
    path = sandbox.directory / 'five.txt'
    path.write_text('a\nb\nc\nd\ne\n')
    path.chmod(0o640)
    sandbox.write(path, 'X\nY', start=1, end=3)
    expect.equal(path.read_text(), 'a\nX\nY\nd\ne\n')
    expect.equal(path.stat().st_mode & 0o777, 0o640)


@cases.case()
def what_cannot_be_read_is_told(sandbox: Sandbox) -> None:
    missing = sandbox.directory / 'missing.txt'
    expect.error(
        sandbox.read(missing), f'File not found: {missing}. Your current working directory is {sandbox.directory}.'
    )
    expect.error(
        sandbox.read('missing.txt'), f'File not found: {missing}. Your current working directory is {sandbox.directory}.'
    )
    expect.error(sandbox.read(sandbox.directory), f'Path is a directory: {sandbox.directory}. You can only read files')
    binary = sandbox.directory / 'data.bin'
    binary.write_bytes(bytes(range(256)) * 8)
    expect.error(sandbox.read(binary), 'ERROR_BINARY_FILE')
    latin = sandbox.directory / 'latin.txt'
    latin.write_bytes('caf\xe9 cr\xe8me\n'.encode('latin-1'))
    expect.error(sandbox.read(latin), f'File could not be decoded as utf-8: {latin}.')


@cases.case()
def what_cannot_be_written_is_told(sandbox: Sandbox) -> None:
    expect.error(
        sandbox.write(sandbox.directory, 'x'), f'Path is a directory: {sandbox.directory}. You can only write to files'
    )


@cases.case()
def a_picture_comes_as_a_data_url(sandbox: Sandbox) -> None:
    (sandbox.directory / 'dot.gif').write_bytes(DOT)
    content = text_of(sandbox.read('dot.gif'), sandbox.directory / 'dot.gif')
    expect.equal(content, 'data:image/gif;base64,R0lGODlhAQABAIAAAP///wAAACH5BAEAAAAALAAAAAABAAEAAAICRAEAOw==')


@cases.case()
def a_listing_has_directories_first(sandbox: Sandbox) -> None:
    for name in ('b-dir', 'A-dir'):
        (sandbox.directory / name).mkdir()
    for name in ('z.txt', 'Y.txt', '.hidden'):
        (sandbox.directory / name).touch()
    (sandbox.directory / 'dangling').symlink_to('nowhere')
    expect.equal(
        sandbox.runtime.list_files(str(sandbox.directory)), ['A-dir/', 'b-dir/', '.hidden', 'Y.txt', 'z.txt']
    )
    expect.equal(sandbox.runtime.list_files(str(sandbox.directory / 'nothing')), [])
    expect.equal(sandbox.runtime.list_files(str(sandbox.directory / 'z.txt')), [])


@cases.case()
def a_listing_without_a_path_is_of_the_workspace(sandbox: Sandbox) -> None:
    marker = sandbox.workspace / 'listed-marker'
    marker.touch()
    try:
        expect.contains('\n'.join(sandbox.runtime.list_files()), 'listed-marker')
    finally:
        marker.unlink()


@cases.case()
def a_file_is_copied_in(sandbox: Sandbox) -> None:
    with tempfile.TemporaryDirectory() as outside:
        source = Path(outside) / 'sent file ü.bin'
        source.write_bytes(bytes(range(256)) * 4096)
        target = sandbox.directory / 'made' / 'on the way'
        sandbox.runtime.copy_to(str(source), str(target))
        expect.equal([entry.name for entry in target.iterdir()], ['sent file ü.bin'])
        expect.equal((target / 'sent file ü.bin').read_bytes() == source.read_bytes(), True)
        source.write_bytes(b'second')
        sandbox.runtime.copy_to(str(source), str(target))
        expect.equal((target / 'sent file ü.bin').read_bytes(), b'second')


@cases.case()
def a_file_may_be_copied_onto_itself(sandbox: Sandbox) -> None:
    path = sandbox.directory / 'same.txt'
    path.write_text('unchanged\n' * 10_000)
    sandbox.runtime.copy_to(str(path), str(sandbox.directory))
    expect.equal(path.read_text() == 'unchanged\n' * 10_000, True)


@cases.case()
def a_directory_is_copied_in_with_its_name(sandbox: Sandbox) -> None:
    with tempfile.TemporaryDirectory() as outside:
        source = Path(outside) / 'tree'
        (source / 'branch').mkdir(parents=True)
        (source / 'root.txt').write_text('root')
        (source / 'branch' / 'leaf.txt').write_text('leaf')
        sandbox.runtime.copy_to(str(source), str(sandbox.directory), recursive=True)
    found = sorted(str(path.relative_to(sandbox.directory)) for path in sandbox.directory.rglob('*') if path.is_file())
    expect.equal(found, ['tree/branch/leaf.txt', 'tree/root.txt'])
    expect.finished(sandbox.run('cat tree/root.txt tree/branch/leaf.txt'), 'rootleaf')


@cases.case()
def an_upload_to_a_relative_path_is_refused(sandbox: Sandbox) -> None:
    from openhands.runtime.utils.request import RequestHTTPError

    source = sandbox.directory / 'source.txt'
    source.write_text('x')
    try:
        sandbox.runtime.copy_to(str(source), 'relative/place')
    except RequestHTTPError as refusal:
        expect.equal(
            (refusal.response.status_code, refusal.detail), (500, '400: Destination must be an absolute path')
        )
    else:
        raise AssertionError('the upload was accepted')


@cases.case()
def a_directory_is_copied_out_as_a_zip(sandbox: Sandbox) -> None:
    (sandbox.directory / 'inner').mkdir()
    (sandbox.directory / 'a.txt').write_text('alpha')
    (sandbox.directory / 'inner' / 'b.bin').write_bytes(bytes(range(256)))
    archive = sandbox.runtime.copy_from(str(sandbox.directory))
    try:
        expect.equal(isinstance(archive, Path), True)
        with zipfile.ZipFile(io.BytesIO(archive.read_bytes())) as opened:
            expect.equal(opened.testzip(), None)
            content = {name: opened.read(name) for name in opened.namelist() if not name.endswith('/')}
    finally:
        archive.unlink()
    expect.equal(content, {'a.txt': b'alpha', 'inner/b.bin': bytes(range(256))})


@cases.case()
def thirty_megabytes_go_in_and_come_out_again(sandbox: Sandbox) -> None:
    with tempfile.TemporaryDirectory() as outside:
        source = Path(outside) / 'big.bin'
        source.write_bytes(os.urandom(1 << 20) * 30)
        sandbox.runtime.copy_to(str(source), str(sandbox.directory))
        archive = sandbox.runtime.copy_from(str(sandbox.directory))
        try:
            with zipfile.ZipFile(archive) as opened:
                same = opened.read('big.bin') == source.read_bytes()
        finally:
            archive.unlink()
    shutil.rmtree(sandbox.directory)
    sandbox.directory.mkdir()
    sandbox.output(f'cd {sandbox.directory}')
    expect.equal(same, True)
