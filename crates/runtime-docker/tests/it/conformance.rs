//! The conformance suite, on an image with one static program and on a Debian with bash.

use crate::fixture::{Fixture, fixture};

mod busybox {
    use super::{Fixture, fixture};

    async fn make() -> Fixture {
        fixture("zareba-test/busybox")
    }

    zareba_testkit::conformance_suite!(make);
}

mod debian {
    use super::{Fixture, fixture};

    async fn make() -> Fixture {
        fixture("zareba-test/debian")
    }

    zareba_testkit::conformance_suite!(make);
}
