//! Who gets a place, and who gives one up.

use std::net::Ipv4Addr;

use super::*;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

struct Room {
    census: Arc<Mutex<Census>>,
    limits: ServerLimits,
}

impl Room {
    fn new(connections: usize, peer_connections: usize) -> Self {
        let limits = ServerLimits {
            connections,
            peer_connections,
            ..ServerLimits::default()
        };
        let census = Arc::default();
        Self { census, limits }
    }

    fn enter(&self, peer: IpAddr) -> Option<Place> {
        Place::take(&self.census, peer, &self.limits)
    }

    fn counts(&self) -> (usize, usize, usize, usize) {
        let census = locked(&self.census);
        (
            census.full,
            census.liveness_only,
            census.peers.len(),
            census.connections.len(),
        )
    }
}

fn is_evicted(place: &Place) -> bool {
    !place.standing.begin_request()
}

/// HS-14.
#[test]
fn the_oldest_idle_stranger_gives_way_and_no_other() {
    let room = Room::new(3, 3);
    let [handling, oldest, newest] = [HERE; 3].map(|peer| room.enter(peer).unwrap());
    assert!(handling.standing.begin_request());
    let first = room.enter(HERE).unwrap();
    assert_eq!(first.admission, Admission::Full);
    assert!(is_evicted(&oldest));
    assert_eq!(room.counts(), (3, 0, 1, 3));
    // Its place was given away already.
    drop(oldest);
    assert_eq!(room.counts(), (3, 0, 1, 3));
    for place in [&newest, &first] {
        assert!(place.standing.begin_request());
        place.standing.end_request(true);
    }
    // An answer makes a connection an idle stranger again, unless it was recognised.
    handling.standing.end_request(false);
    let second = room.enter(HERE).unwrap();
    assert_eq!(second.admission, Admission::Full);
    assert!(is_evicted(&handling));
    assert!(second.standing.begin_request());
    let beyond = room.enter(HERE).unwrap();
    assert_eq!(beyond.admission, Admission::LivenessOnly);
    drop((handling, newest, first, second, beyond));
    assert_eq!(room.counts(), (0, 0, 0, 0));
}

#[test]
fn what_was_recognised_once_is_never_evicted() {
    let room = Room::new(1, 1);
    let known = room.enter(HERE).unwrap();
    assert!(known.standing.begin_request());
    known.standing.end_request(true);
    assert!(known.standing.begin_request());
    known.standing.end_request(false);
    assert_eq!(room.enter(HERE).unwrap().admission, Admission::LivenessOnly);
    assert!(!is_evicted(&known));
}

#[test]
fn a_peer_with_all_its_places_taken_evicts_its_own_strangers() {
    let room = Room::new(3, 1);
    let [here, there] = [HERE, THERE].map(|peer| room.enter(peer).unwrap());
    let again = room.enter(THERE).unwrap();
    assert_eq!(again.admission, Admission::Full);
    assert!(!is_evicted(&here) && is_evicted(&there));
}

/// HS-14.
#[test]
fn the_reserve_for_liveness_cannot_be_held_by_strangers_either() {
    let room = Room::new(1, 1);
    let known = room.enter(HERE).unwrap();
    assert!(known.standing.begin_request());
    let idle: Vec<Place> = (0..2 * LIVENESS_RESERVE)
        .map(|_| room.enter(THERE).unwrap())
        .collect();
    assert_eq!(
        room.counts(),
        (1, LIVENESS_RESERVE, 1, 1 + LIVENESS_RESERVE)
    );
    let (evicted, kept) = idle.split_at(LIVENESS_RESERVE);
    assert!(evicted.iter().all(is_evicted));
    assert!(!kept.iter().any(is_evicted));
    // Now all of them are being answered.
    assert!(room.enter(THERE).is_none());
}
