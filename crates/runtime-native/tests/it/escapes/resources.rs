//! Attempts to take more than was given, each at its limit and past it (NS-13, NS-15). What
//! control groups and the disk limit hold is in `limits.rs`.

use super::{MEMORY_BYTES, MIB, Prison, python};

/// Opens files until that is refused: how many were open, and why no more.
const OPEN_FILES: &str = r"
held = []
try:
    while len(held) < 10000:
        held.append(os.open('/dev/null', os.O_RDONLY))
except OSError as error:
    print(max(held) + 1, errno.errorcode[error.errno])";

#[tokio::test]
async fn open_files_end_at_their_limit_ns_15() {
    let prison = Prison::new().await;
    assert_eq!(prison.python(OPEN_FILES).await, "4096 EMFILE");
    prison.end().await;
}

/// What files in memory may take together: half of the memory that there is.
const FILES_MIB: u64 = MEMORY_BYTES / 2 / MIB;

/// The limit itself is reached, and not passed; a few small files were there before.
#[tokio::test]
async fn files_in_memory_end_at_their_limit_ns_5() {
    let program = format!(
        r"
written, chunk = 0, bytes(1 << 20)
file = os.open('/var/tmp/large', os.O_CREAT | os.O_WRONLY)
try:
    while written < {FILES_MIB} * 2 << 20:
        written += os.write(file, chunk)
except OSError as error:
    print(written + (64 << 10) >> 20, errno.errorcode[error.errno])
try:
    os.write(os.open('/tmp/small', os.O_CREAT | os.O_WRONLY), b'no room')
except OSError as error:
    print(errno.errorcode[error.errno])
os.unlink('/var/tmp/large')
open('/tmp/small', 'w').write('works again')"
    );
    let prison = Prison::new().await;
    let shown = prison.python(&program).await;
    assert_eq!(shown, format!("{FILES_MIB} ENOSPC\nENOSPC"));
    prison.end().await;
}

#[tokio::test]
async fn files_in_memory_cannot_be_more_than_their_limit_ns_5() {
    const MAX: u64 = FILES_MIB * 128;
    let program = format!(
        r"
made = 0
try:
    while made < {MAX} * 2:
        os.close(os.open('/var/tmp/%d' % made, os.O_CREAT))
        made += 1
except OSError as error:
    print({MAX} - 128 < made < {MAX}, errno.errorcode[error.errno])"
    );
    let prison = Prison::new().await;
    assert_eq!(prison.python(&program).await, "True ENOSPC");
    prison.end().await;
}

#[tokio::test]
async fn locked_memory_ends_at_its_limit_ns_15() {
    const PROGRAM: &str = r"
import mmap
page = mmap.mmap(-1, 1 << 20)
start = ctypes.addressof(ctypes.c_char.from_buffer(page))
for size in (64 << 10, (64 << 10) + 4096):
    failed = LIBC.mlock(ctypes.c_void_p(start), ctypes.c_size_t(size))
    print(errno.errorcode[ctypes.get_errno()] if failed else 'locked')";
    let prison = Prison::new().await;
    assert_eq!(prison.python(PROGRAM).await, "locked\nENOMEM");
    prison.end().await;
}

#[tokio::test]
async fn no_limit_can_be_raised_ns_15() {
    const PROGRAM: &str = r"
import resource
names = ('NOFILE', 'NPROC', 'FSIZE', 'CORE', 'STACK', 'MEMLOCK', 'SIGPENDING', 'MSGQUEUE')
for name in names:
    kind = getattr(resource, 'RLIMIT_' + name)
    soft, hard = resource.getrlimit(kind)
    assert hard != resource.RLIM_INFINITY, name
    resource.setrlimit(kind, (hard, hard))
    try:
        resource.setrlimit(kind, (hard, hard + 1))
    except ValueError:
        pass
    if resource.getrlimit(kind) == (hard, hard):
        print(name, end=' ')";
    let prison = Prison::new().await;
    let shown = prison.python(PROGRAM).await;
    assert_eq!(
        shown,
        "NOFILE NPROC FSIZE CORE STACK MEMLOCK SIGPENDING MSGQUEUE"
    );
    prison.end().await;
}

#[tokio::test]
async fn a_crash_leaves_no_core_behind_and_starts_no_program_outside_ns_7() {
    let prison = Prison::new().await;
    let (status, _) = prison.shell("sh -c 'kill -SEGV $$'").await;
    assert_eq!(status, 128 + 11);
    let limits = "awk '/^Max core/ {print $5, $6}' /proc/self/limits /proc/$PPID/limits; ls";
    assert_eq!(prison.shell(limits).await, (0, "1 1\n1 1".to_owned()));
    prison.end().await;
}

/// Lowers the limit of core files of itself and of another process in every way that there is.
const LOWER_CORE_LIMITS: &str = r"
import resource, signal
CORE = resource.RLIMIT_CORE
other = os.fork() or signal.pause()
for process in (0, os.getpid(), other):
    for wanted in ((0, 0), (0, 1)):
        resource.prlimit(process, CORE, wanted)
resource.setrlimit(CORE, (0, 0))
new = (ctypes.c_ulong * 2)(0, 0)
LIBC.syscall(160, CORE, ctypes.byref(new))
LIBC.syscall(302, other, CORE, ctypes.byref(new), None)
print(resource.getrlimit(CORE), resource.prlimit(other, CORE))
os.kill(other, signal.SIGKILL)";

/// At 0 the kernel starts the machine's program for crashes, at 1 it does not.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn the_limit_of_core_files_cannot_be_lowered_ns_7() {
    let prison = Prison::new().await;
    let shell = "ulimit -c 0; ulimit -c; sh -c 'ulimit -S -c 0; ulimit -c'";
    assert_eq!(prison.shell(shell).await, (0, "0\n0".to_owned()));
    let shown = prison.python(LOWER_CORE_LIMITS).await;
    assert_eq!(shown, "(1, 1) (1, 1)");
    prison.end().await;
}

/// A process that stays has as many watchers of files as it may: why no more.
const ALL_WATCHERS: &str = r"
import signal
told, tells = os.pipe()
if os.fork():
    print(os.read(told, 100).decode())
else:
    os.setsid()
    for descriptor in range(3):
        os.dup2(os.open('/dev/null', os.O_RDWR), descriptor)
    held = 0
    while held < 4000 and LIBC.inotify_init() >= 0:
        held += 1
    os.write(tells, errno.errorcode[ctypes.get_errno()].encode())
    signal.pause()";

const ONE_WATCHER: &str = "print(LIBC.inotify_init() >= 0)";

/// The kernel counts them for each user: for two sandboxes, and for whoever has started both.
#[tokio::test]
async fn a_sandbox_that_uses_up_its_watchers_leaves_others_theirs_ns_15() {
    let (greedy, other) = (Prison::new().await, Prison::new().await);
    assert_eq!(greedy.python(ALL_WATCHERS).await, "EMFILE");
    assert_eq!(greedy.python(ONE_WATCHER).await, "False");
    assert_eq!(other.python(ONE_WATCHER).await, "True");
    assert_eq!(python::outside(ONE_WATCHER), "True");
    greedy.end().await;
    other.end().await;
}

#[tokio::test]
async fn nothing_but_watchers_can_be_taken_from_the_machines_quotas_ns_15() {
    const PROGRAM: &str = r"
names = sorted(os.listdir('/proc/sys/user'))
print([name for name in names if int(read('/proc/sys/user/' + name))])";
    let prison = Prison::new().await;
    let shown = prison.python(PROGRAM).await;
    assert_eq!(shown, "['max_inotify_instances', 'max_inotify_watches']");
    prison.end().await;
}

/// All of a machine have 4,096 together.
#[tokio::test]
async fn terminals_end_at_a_limit_of_the_sandbox_ns_15() {
    const PROGRAM: &str = r"
held = []
try:
    while len(held) < 1000:
        held.append(os.open('/dev/ptmx', os.O_RDWR | os.O_NOCTTY))
except OSError as error:
    print(200 < len(held) <= 256, errno.errorcode[error.errno])";
    let prison = Prison::new().await;
    assert_eq!(prison.python(PROGRAM).await, "True ENOSPC");
    prison.end().await;
}

/// The kernel counts the requests of all processes of a machine together.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn the_machines_asynchronous_files_cannot_be_taken_ns_10() {
    let attempt = "numbered(206, 1, 0)";
    Prison::new().await.finds(attempt, "ENOSYS").await;
}

/// As many as may be made of each: segments of a mebibyte, queues and sets of semaphores.
const ALL_OBJECTS: &str = r"
def count(make, most):
    made = 0
    while made < most and make() >= 0:
        made += 1
    return made
ours = 0o1000 | 0o600
print(count(lambda: LIBC.shmget(0, 1 << 20, ours), 4096),
      count(lambda: LIBC.msgget(0, ours), 4096),
      count(lambda: LIBC.semget(0, 1, ours), 4096))";

/// They outlive whoever made them. An ordinary user keeps the kernel's own limits.
#[tokio::test]
#[ignore = "needs root"]
async fn objects_that_outlive_processes_end_at_limits_of_the_sandbox_ns_15() {
    let prison = Prison::new().await;
    let shown = prison.python(ALL_OBJECTS).await;
    assert_eq!(shown, format!("{FILES_MIB} 128 128"));
    prison.end().await;
}

#[tokio::test]
async fn a_priority_cannot_be_raised_ns_8() {
    Prison::new().await.finds("os.nice(-5)", "EPERM").await;
}

#[tokio::test]
async fn the_scheduler_cannot_be_told_to_run_nobody_else_ns_8() {
    let attempt = "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))";
    Prison::new().await.finds(attempt, "EPERM").await;
}
