"""Environment variables that the client puts into the sandbox."""

from . import expect
from .registry import Cases
from .sandbox import Sandbox, Server

cases = Cases()
CASES = cases.listed

CONFIGURED = Server(startup_env=(('FROM_CONFIG', 'set by the configuration'),))


@cases.case()
def variables_are_added_and_overwritten(sandbox: Sandbox) -> None:
    sandbox.runtime.add_env_vars({'QUUX': 'abc"def'})
    expect.finished(sandbox.run('echo $QUUX'), 'abc"def')
    sandbox.runtime.add_env_vars({'quux': 'changed', 'other': 'two words'})
    expect.finished(sandbox.run('echo "$QUUX,$OTHER"'), 'changed,two words')
    expect.finished(sandbox.run("sh -c 'echo $OTHER'"), 'two words')


@cases.case()
def adding_nothing_changes_nothing(sandbox: Sandbox) -> None:
    sandbox.output('env > first.txt')
    sandbox.runtime.add_env_vars({})
    sandbox.output('env > second.txt')
    first, second = ((sandbox.directory / name).read_text() for name in ('first.txt', 'second.txt'))
    expect.equal(second, first)


@cases.case(server=CONFIGURED)
def variables_of_the_configuration_are_there_from_the_start(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('echo $FROM_CONFIG'), 'set by the configuration')


@cases.case(server=CONFIGURED)
def variables_are_kept_for_later_shells(sandbox: Sandbox) -> None:
    sandbox.runtime.add_env_vars({'kept_token': 'abc123'})
    expect.contains((sandbox.home / '.bashrc').read_text(), 'export KEPT_TOKEN=abc123\n')
    expect.finished(sandbox.run('echo $KEPT_TOKEN', is_static=True, cwd=str(sandbox.directory)), 'abc123')


@cases.case(server=CONFIGURED)
def a_profile_that_the_client_has_broken_does_not_harm_new_shells(sandbox: Sandbox) -> None:
    # The client writes the value without its quotes, which leaves one open.
    sandbox.runtime.add_env_vars({'one_quote': 'a"b'})
    expect.contains((sandbox.home / '.bashrc').read_text(), 'export ONE_QUOTE=a"b\n')
    expect.finished(sandbox.run('echo fine', is_static=True, cwd=str(sandbox.directory)), 'fine')


@cases.case(server=Server(host_env=(('SANDBOX_ENV_FOOBAR', 'BAZ'),)))
def variables_of_the_host_with_the_prefix_are_passed_on(sandbox: Sandbox) -> None:
    expect.finished(sandbox.run('echo $FOOBAR'), 'BAZ')
