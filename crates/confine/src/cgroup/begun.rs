//! Making a group in two steps, around the birth of its first process.
//!
//! A process can be born only in a directory of the second generation, which is made in no time.
//! Those of the first generation take longer than a process needs to make itself at home, and are
//! entered by the process itself; so they are made meanwhile (see `entrance`).

use std::os::fd::{AsFd as _, BorrowedFd};

use super::{
    CgroupError, Group, Host, Leaf, Limits, Version, check_name,
    group::{apply_all, hold_to, take_legacy_seats, take_unified_seat},
    leaf::take_leaf_seat,
    seats::Seats,
};

/// A group of which there is as much as a process needs to be born in it. Dropping the value
/// changes nothing; [`Group::open`] finds what there is of the group, to remove it.
#[derive(Debug)]
pub struct Begun<'a> {
    host: &'a Host,
    id: &'a str,
    limits: &'a Limits,
    leaf: &'a str,
    group_seats: Seats,
    leaf_seats: Seats,
}

impl Group {
    /// Begins a group with a single leaf, which has no limits beside the group's. Where processes
    /// can be anywhere, that leaf is the group itself: in the first generation, and in the second
    /// where it controls nothing. Every directory less makes a start and an end faster.
    ///
    /// # Errors
    /// As for [`Group::create`], but what has been made stays.
    pub fn begin<'a>(
        host: &'a Host,
        id: &'a str,
        limits: &'a Limits,
        leaf: &'a str,
    ) -> Result<Begun<'a>, CgroupError> {
        check_name(id)?;
        check_name(leaf)?;
        limits.check()?;
        let (mut group_seats, mut leaf_seats) = (Seats::default(), Seats::default());
        take_unified_seat(host, id, &mut group_seats)?;
        for seat in &group_seats.0 {
            leaf_seats.0.push(match seat.controllers.is_empty() {
                true => seat.lent(),
                false => take_leaf_seat(seat, leaf)?,
            });
        }
        Ok(Begun {
            host,
            id,
            limits,
            leaf,
            group_seats,
            leaf_seats,
        })
    }
}

impl Begun<'_> {
    /// Where the first process is to be born, where there is such a place.
    #[must_use]
    pub fn birthplace(&self) -> Option<BorrowedFd<'_>> {
        let mut seats = self.leaf_seats.0.iter();
        let unified = seats.find(|seat| seat.version == Version::V2);
        unified.map(|seat| seat.directory.as_fd())
    }

    /// Makes the rest, and sets the limits.
    ///
    /// # Errors
    /// As for [`Group::create`], but what has been made stays.
    pub fn finish(&self) -> Result<(Group, Leaf), CgroupError> {
        let mut seats = Seats(self.group_seats.0.clone());
        take_legacy_seats(self.host, self.id, self.limits, &mut seats)?;
        let report = hold_to(
            self.limits.demand,
            apply_all(self.host, &seats, self.limits),
        )?;
        let lent = seats.0[self.group_seats.0.len()..]
            .iter()
            .map(|seat| seat.lent());
        let leaf_seats = Seats(self.leaf_seats.0.iter().cloned().chain(lent).collect());
        let leaf = Leaf::unlimited(self.leaf, leaf_seats);
        let group = Group {
            id: self.id.to_owned(),
            seats,
            report: report.into(),
            demand: self.limits.demand,
        };
        Ok((group, leaf))
    }
}
