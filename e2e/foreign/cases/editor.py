"""The editor: every command, with the sentences that agents have learned to read."""

from pathlib import Path

from openhands.events.event import FileEditSource
from openhands.events.observation import FileEditObservation, FileReadObservation, Observation

from . import expect
from .registry import Cases
from .sandbox import Sandbox

cases = Cases()
CASES = cases.listed

REVIEW = 'Review the changes and make sure they are as expected. Edit the file again if necessary.'
REVIEW_INSERT = (
    'Review the changes and make sure they are as expected (correct indentation, no duplicate lines, etc). '
    'Edit the file again if necessary.'
)


def numbered(what: object, lines: list[str], first: int = 1) -> str:
    body = '\n'.join(f'{number:6}\t{line}' for number, line in enumerate(lines, first))
    return f"Here's the result of running `cat -n` on {what}:\n{body}\n"


def edited(observation: Observation, path: Path, content: str, diff: str = '') -> None:
    expect.equal(
        (type(observation), observation.content, observation.path, observation.impl_source, observation.prev_exist),
        (FileEditObservation, content, str(path), FileEditSource.OH_ACI, False),
    )
    expect.equal(observation.diff, diff)


def failed(observation: Observation, path: Path | str, message: str) -> None:
    expect.equal(
        (type(observation), observation.content, observation.path, observation.diff),
        (FileEditObservation, f'ERROR:\n{message}', str(path), ''),
    )


def sample(sandbox: Sandbox, text: str = 'This is a test file.\nThis file is for testing purposes.\n') -> Path:
    path = sandbox.directory / 'test.txt'
    path.write_text(text)
    return path


@cases.case()
def a_file_is_viewed_with_line_numbers(sandbox: Sandbox) -> None:
    path = sample(sandbox)
    listing = numbered(path, ['This is a test file.', 'This file is for testing purposes.', ''])
    edited(sandbox.edit(path, 'view'), path, listing)
    seen = sandbox.view(path)
    expect.equal((type(seen), seen.content, seen.path), (FileReadObservation, listing, str(path)))


@cases.case()
def a_range_of_lines_is_viewed(sandbox: Sandbox) -> None:
    path = sample(sandbox, ''.join(f'l{n}\n' for n in range(1, 7)))
    expect.equal(sandbox.view(path, [2, 4]).content, numbered(path, ['l2', 'l3', 'l4'], 2))
    expect.equal(sandbox.view(path, [5, -1]).content, numbered(path, ['l5', 'l6'], 5))
    expect.equal(
        sandbox.view(path, [0, 2]).content,
        'ERROR:\nInvalid `view_range` parameter: [0, 2]. Its first element `0` should be within the range of lines '
        'of the file: [1, 6].',
    )
    expect.equal(
        sandbox.view(path, [4, 2]).content,
        'ERROR:\nInvalid `view_range` parameter: [4, 2]. Its second element `2` should be greater than or equal to '
        'the first element `4`.',
    )


@cases.case()
def a_directory_is_viewed_two_levels_deep(sandbox: Sandbox) -> None:
    (sandbox.directory / 'sub' / 'deeper' / 'deepest').mkdir(parents=True)
    (sandbox.directory / 'sub' / 'in.txt').touch()
    sample(sandbox)
    (sandbox.directory / '.secret').touch()
    top = sandbox.directory
    edited(
        sandbox.edit(top, 'view'),
        top,
        f"Here's the files and directories up to 2 levels deep in {top}, excluding hidden items:\n"
        f'{top}/\n{top}/sub/\n{top}/sub/deeper/\n{top}/sub/in.txt\n{top}/test.txt\n\n'
        f"1 hidden files/directories in this directory are excluded. You can use 'ls -la {top}' to see them.",
    )


@cases.case()
def a_file_is_created_exactly(sandbox: Sandbox) -> None:
    path = sandbox.directory / 'new.txt'
    edited(
        sandbox.edit(path, 'create', file_text='New file content'),
        path,
        f'File created successfully at: {path}',
        f'--- {path}\n+++ {path}\n@@ -1 +1 @@\n-\n+New file content',
    )
    expect.equal(path.read_text(), 'New file content')
    expect.equal(sandbox.view(path).content, numbered(path, ['New file content']))


@cases.case()
def an_empty_file_can_be_created_and_viewed(sandbox: Sandbox) -> None:
    path = sandbox.directory / 'empty.txt'
    edited(sandbox.edit(path, 'create', file_text=''), path, f'File created successfully at: {path}')
    expect.equal(path.read_bytes(), b'')
    expect.equal(sandbox.view(path).content, numbered(path, ['']))


@cases.case()
def creating_needs_a_text_and_a_free_name(sandbox: Sandbox) -> None:
    path = sandbox.directory / 'new.txt'
    failed(sandbox.edit(path, 'create'), path, 'Parameter `file_text` is required for command: create.')
    expect.equal(path.exists(), False)
    path.write_text('old')
    failed(
        sandbox.edit(path, 'create', file_text='new'),
        path,
        f'Invalid `path` parameter: {path}. File already exists at: {path}. Cannot overwrite files using command `create`.',
    )
    expect.equal(path.read_text(), 'old')


@cases.case()
def a_text_is_replaced(sandbox: Sandbox) -> None:
    path = sample(sandbox)
    observation = sandbox.edit(path, 'str_replace', old_str='test file', new_str='sample file')
    edited(
        observation,
        path,
        f'The file {path} has been edited. '
        + numbered(f'a snippet of {path}', ['This is a sample file.', 'This file is for testing purposes.', ''])
        + REVIEW,
        f'--- {path}\n+++ {path}\n@@ -1 +1 @@\n-This is a test file.\n+This is a sample file.',
    )
    expect.equal((observation.old_content, observation.new_content), ('test file', 'sample file'))
    expect.equal(path.read_text(), 'This is a sample file.\nThis file is for testing purposes.\n')


@cases.case()
def several_lines_with_tabs_are_replaced(sandbox: Sandbox) -> None:
    path = sample(sandbox, 'def test():\n\tprint("Hello, World!")\n')
    edited(
        sandbox.edit(
            path,
            'str_replace',
            old_str='def test():\n\tprint("Hello, World!")',
            new_str='def test():\n\tprint("Hello, Universe!")',
        ),
        path,
        f'The file {path} has been edited. '
        + numbered(f'a snippet of {path}', ['def test():', '\tprint("Hello, Universe!")', ''])
        + REVIEW,
        f'--- {path}\n+++ {path}\n@@ -2 +2 @@\n-\tprint("Hello, World!")\n+\tprint("Hello, Universe!")',
    )


@cases.case()
def an_edit_shows_a_few_lines_around_it(sandbox: Sandbox) -> None:
    path = sample(sandbox, ''.join(f'line {n}\n' for n in range(1, 21)))
    # Where the snippet ends inside the file, an empty line closes it.
    shown = ['line 7', 'line 8', 'line 9', 'changed', 'line 11', 'line 12', 'line 13', 'line 14', 'line 15', '']
    observation = sandbox.edit(path, 'str_replace', old_str='line 10\n', new_str='changed\n')
    expect.equal(
        observation.content, f'The file {path} has been edited. {numbered(f"a snippet of {path}", shown, 7)}{REVIEW}'
    )
    shown = ['line 5', 'line 6', 'line 7', 'line 8', 'inserted', 'line 9', 'changed', 'line 11', 'line 12', '']
    observation = sandbox.edit(path, 'insert', insert_line=8, new_str='inserted')
    expect.equal(
        observation.content,
        f'The file {path} has been edited. {numbered("a snippet of the edited file", shown, 5)}{REVIEW_INSERT}',
    )


@cases.case()
def a_text_that_is_there_twice_is_not_replaced(sandbox: Sandbox) -> None:
    path = sample(sandbox, 'This is a test file.\nThis file is for test purposes.\n')
    before = path.read_text()
    failed(
        sandbox.edit(path, 'str_replace', old_str='test', new_str='sample'),
        path,
        'No replacement was performed. Multiple occurrences of old_str `test` in lines [1, 2]. '
        'Please ensure it is unique.',
    )
    block = 'if x:\n    y()\n'
    path.write_text(f'{block}a\nb\nc\n\n{block}')
    failed(
        sandbox.edit(path, 'str_replace', old_str=block, new_str='gone\n'),
        path,
        f'No replacement was performed. Multiple occurrences of old_str `{block}` in lines [1, 7]. '
        'Please ensure it is unique.',
    )
    path.write_text(before)
    failed(
        sandbox.edit(path, 'str_replace', old_str='absent', new_str='x'),
        path,
        f'No replacement was performed, old_str `absent` did not appear verbatim in {path}.',
    )
    failed(
        sandbox.edit(path, 'str_replace', old_str='This', new_str='This'),
        path,
        'Invalid `new_str` parameter: This. No replacement was performed. `new_str` and `old_str` must be different.',
    )
    failed(
        sandbox.edit(path, 'str_replace', new_str='x'), path, 'Parameter `old_str` is required for command: str_replace.'
    )
    expect.equal(path.read_text(), before)


@cases.case()
def an_empty_text_stands_for_a_removal_but_is_found_everywhere(sandbox: Sandbox) -> None:
    path = sample(sandbox, 'Line 1\nLine to remove\nLine 3\n')
    observation = sandbox.edit(path, 'str_replace', old_str='Line to remove\n', new_str='')
    expect.contains(observation.content, f'The file {path} has been edited. ')
    expect.equal(path.read_text(), 'Line 1\nLine 3\n')
    # Writing ends the last line, and the place behind it counts.
    sandbox.write(path, 'Line 1\nLine 2\nLine 3')
    failed(
        sandbox.edit(path, 'str_replace', old_str='', new_str='New'),
        path,
        'No replacement was performed. Multiple occurrences of old_str `` in lines [1, 2, 3, 4]. '
        'Please ensure it is unique.',
    )


@cases.case()
def a_line_is_inserted(sandbox: Sandbox) -> None:
    path = sample(sandbox, 'Line 1\nLine 2\n')
    edited(
        sandbox.edit(path, 'insert', insert_line=1, new_str='Inserted line'),
        path,
        f'The file {path} has been edited. '
        + numbered('a snippet of the edited file', ['Line 1', 'Inserted line', 'Line 2', ''])
        + REVIEW_INSERT,
        f'--- {path}\n+++ {path}\n@@ -1,0 +2 @@\n+Inserted line',
    )
    expect.equal(path.read_text(), 'Line 1\nInserted line\nLine 2\n')


@cases.case()
def an_empty_line_is_inserted(sandbox: Sandbox) -> None:
    path = sample(sandbox, 'Line 1\nLine 2\n')
    expect.contains(sandbox.edit(path, 'insert', insert_line=1, new_str='').content, '     2\t\n')
    expect.equal(path.read_text(), 'Line 1\n\nLine 2\n')


@cases.case()
def inserting_needs_a_line_within_the_file_and_a_text(sandbox: Sandbox) -> None:
    path = sample(sandbox, 'Line 1\nLine 2\n')
    failed(
        sandbox.edit(path, 'insert', insert_line=10, new_str='x'),
        path,
        'Invalid `insert_line` parameter: 10. It should be within the range of allowed values: [0, 2]',
    )
    failed(
        sandbox.edit(path, 'insert', new_str='x'), path, 'Parameter `insert_line` is required for command: insert.'
    )
    failed(
        sandbox.edit(path, 'insert', insert_line=1), path, 'Parameter `new_str` is required for command: insert.'
    )
    failed(
        sandbox.edit(path, 'insert', insert_line='abc', new_str='x'),
        path,
        "Invalid insert_line value: 'abc'. Expected an integer.",
    )
    expect.equal(path.read_text(), 'Line 1\nLine 2\n')
    sandbox.edit(path, 'insert', insert_line='2', new_str='from a string')
    expect.equal(path.read_text(), 'Line 1\nLine 2\nfrom a string\n')


@cases.case(better='the original leaves mode 0600 behind')
def editing_keeps_the_mode_of_the_file(sandbox: Sandbox) -> None:
    path = sample(sandbox, '#!/bin/sh\necho a\n')
    path.chmod(0o755)
    sandbox.edit(path, 'insert', insert_line=2, new_str='echo b')
    sandbox.edit(path, 'str_replace', old_str='echo a', new_str='echo c')
    expect.equal(path.stat().st_mode & 0o777, 0o755)
    expect.finished(sandbox.run('./test.txt'), 'c\nb')


@cases.case()
def an_edit_is_undone(sandbox: Sandbox) -> None:
    path = sample(sandbox)
    before = path.read_text()
    sandbox.edit(path, 'str_replace', old_str='test file', new_str='sample file')
    edited(
        sandbox.edit(path, 'undo_edit'),
        path,
        f'Last edit to {path} undone successfully. '
        + numbered(path, ['This is a test file.', 'This file is for testing purposes.', '']),
        f'--- {path}\n+++ {path}\n@@ -1 +1 @@\n-This is a sample file.\n+This is a test file.',
    )
    expect.equal(path.read_text(), before)
    failed(sandbox.edit(path, 'undo_edit'), path, f'No edit history found for {path}.')


@cases.case()
def a_path_must_be_absolute_and_lead_somewhere(sandbox: Sandbox) -> None:
    failed(
        sandbox.edit('odd/path.txt', 'view'),
        'odd/path.txt',
        'Invalid `path` parameter: odd/path.txt. The path should be an absolute path, starting with `/`.',
    )
    missing = sandbox.directory / 'missing.txt'
    failed(
        sandbox.edit(missing, 'str_replace', old_str='a', new_str='b'),
        missing,
        f'Invalid `path` parameter: {missing}. The path {missing} does not exist. Please provide a valid path.',
    )
    failed(
        sandbox.edit(sandbox.directory, 'insert', insert_line=0, new_str='x'),
        sandbox.directory,
        f'Invalid `path` parameter: {sandbox.directory}. The path {sandbox.directory} is a directory and only the '
        '`view` command can be used on directories.',
    )
    path = sample(sandbox)
    failed(
        sandbox.edit(path, 'destroy'),
        path,
        'Unrecognized command destroy. The allowed commands for the oh_editor tool are: view, create, str_replace, '
        'insert, undo_edit',
    )


@cases.case()
def a_large_file_is_shown_in_part(sandbox: Sandbox) -> None:
    path = sample(sandbox, 'Line of a large file\n' * 2000)
    content = sandbox.view(path).content
    expect.contains(
        content,
        '<response clipped><NOTE>Due to the max output limit, only part of this file has been shown to you. '
        'You should retry this tool after you have searched inside the file with `grep -n` in order to find the line '
        'numbers of what you are looking for.</NOTE>',
    )
    expect.contains(content, '   761\tLine of a large file\n')
    expect.lacks(content, '   764\t')


@cases.case()
def a_binary_file_is_not_edited(sandbox: Sandbox) -> None:
    path = sandbox.directory / 'data.bin'
    path.write_bytes(b'\x7fELF' + bytes(200))
    failed(
        sandbox.edit(path, 'str_replace', old_str='a', new_str='b'),
        path,
        f'File validation failed for {path}: File appears to be binary and this file type cannot be read or edited '
        'by this tool.',
    )


@cases.case()
def three_hundred_edits_in_a_row_all_land(sandbox: Sandbox) -> None:
    path = sample(sandbox, 'value 0\n' + 'filler\n' * 200)
    rounds = 300 if not sandbox.is_original else 30
    for number in range(rounds):
        observation = sandbox.edit(path, 'str_replace', old_str=f'value {number}\n', new_str=f'value {number + 1}\n')
        expect.contains(observation.content, f'The file {path} has been edited. ')
    expect.equal(path.read_text(), f'value {rounds}\n' + 'filler\n' * 200)
