//! Attempts in Python, which reaches every system call and is on every machine that runs tests.

use std::process::{Command, Stdio};

/// Ends a program that is written into a command.
const END: &str = "END_OF_ATTEMPT";

/// What every attempt can use. `call` makes a system call by its name, and `attempt` says what
/// came of something: the name of the error, or what was returned.
const PRELUDE: &str = r"
import ctypes, errno, os, platform, socket, struct
LIBC = ctypes.CDLL(None, use_errno=True)
CALLS = {
    'acct': (163, 89), 'add_key': (248, 217), 'adjtimex': (159, 171), 'bpf': (321, 280),
    'chroot': (161, 51), 'clock_settime': (227, 112), 'clone': (56, 220), 'clone3': (435, 435),
    'delete_module': (176, 106), 'fanotify_init': (300, 262), 'finit_module': (313, 273),
    'fsopen': (430, 430), 'getpid': (39, 172), 'init_module': (175, 105),
    'io_uring_setup': (425, 425), 'ioctl': (16, 29), 'ioperm': (173, None), 'iopl': (172, None),
    'ioprio_set': (251, 30), 'kcmp': (312, 272), 'kexec_load': (246, 104), 'keyctl': (250, 219),
    'linkat': (265, 37), 'listmount': (458, 458), 'modify_ldt': (154, None), 'mount': (165, 40),
    'mount_setattr': (442, 442), 'move_mount': (429, 429), 'name_to_handle_at': (303, 264),
    'open_by_handle_at': (304, 265), 'open_tree': (428, 428), 'perf_event_open': (298, 241),
    'pidfd_getfd': (438, 438), 'pidfd_open': (434, 434), 'pivot_root': (155, 41),
    'process_madvise': (440, 440), 'process_vm_readv': (310, 270),
    'process_vm_writev': (311, 271), 'ptrace': (101, 117), 'quotactl': (179, 60),
    'reboot': (169, 142), 'request_key': (249, 218), 'setdomainname': (171, 162),
    'sethostname': (170, 161), 'setns': (308, 268), 'settimeofday': (164, 170),
    'swapoff': (168, 225), 'swapon': (167, 224), 'syslog': (103, 116), 'umount2': (166, 39),
    'unshare': (272, 97), 'userfaultfd': (323, 282),
}
def numbered(number, *arguments):
    given = [each if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments]
    ctypes.set_errno(0)
    result = LIBC.syscall(ctypes.c_long(number), *given)
    if result == -1 and ctypes.get_errno():
        raise OSError(ctypes.get_errno(), 'refused')
    return result
def call(name, *arguments):
    return numbered(CALLS[name][platform.machine() != 'x86_64'], *arguments)
def attempt(deed):
    try:
        return 'worked: %s' % (deed(),)
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
def read(path):
    with open(path, 'rb') as file:
        return file.read(4096)
def write(path, content):
    file = os.open(path, os.O_WRONLY)
    return os.write(file, content)
";

/// A program that shows what an expression comes to.
pub(super) fn shown(expression: &str) -> String {
    format!("print(attempt(lambda: {expression}))")
}

/// A program as a command of the shell.
pub(super) fn inside(program: &str) -> String {
    format!("python3 - <<'{END}'{PRELUDE}{program}\n{END}")
}

/// What a program prints without any walls. It must harm nobody.
pub(super) fn outside(program: &str) -> String {
    let ended = Command::new("python3")
        .args(["-c", &format!("{PRELUDE}{program}")])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let printed = String::from_utf8(ended.stdout).unwrap();
    // One that a signal ended has printed nothing, and that is an answer as well.
    printed.trim_end().to_owned()
}
