//! The two ends of a queue in every order in which their threads can run, with as many preemptions
//! as each test says, and with every value that their loads can see.
//!
//! What is checked is the code that runs outside of tests; counters, ring, event flag and futex are
//! loom's (see `sync`). Each of these changes was tried alone, and makes a test fail:
//!
//! | change | what is found |
//! |---|---|
//! | either counter published, or read before the ring is touched, `Relaxed` | a race for a word of the ring |
//! | a counter published before the ring is read or written | the same |
//! | a bit of the event flag set or cleared `Relaxed` | an end that sleeps for ever |
//! | no one woken; woken only if the bit was set already; the wrong bit woken, or waited for | the same |
//! | woken before the counter is published, by either end | the same |
//! | sleeping though the bit was set, or on a value of the word read again | the same |
//! | a bit not cleared before sleeping | an end that goes round and round |
//! | an interrupt that wakes before it is thrown, sets no bit, or does not wake | an end that sleeps for ever |

use super::*;
use loom::thread;

/// A datum of one word.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Word([u64; 1]);

impl Datum for Word {
    const WORDS: usize = 1;

    fn words(&self) -> &[u64] {
        &self.0
    }

    fn words_mut(&mut self) -> &mut [u64] {
        &mut self.0
    }
}

fn words(values: std::ops::Range<u64>) -> Vec<Word> {
    values.map(|value| Word([value])).collect()
}

fn in_every_order(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(test);
}

fn ends(capacity: usize) -> (Writer<Word>, Reader<Word>) {
    let queue = MessageQueue::create(capacity).unwrap();
    (queue.clone().into_writer(), queue.into_reader())
}

/// Through a ring that holds less than all of them, so that each end has to wait for the other.
fn all_packets_arrive(capacity: usize, packets: &'static [u64]) {
    let (mut writer, mut reader) = ends(capacity);
    let count = packets.iter().sum();
    let sender = thread::spawn(move || {
        let mut next = 0;
        for length in packets {
            writer.write(&words(next..next + length), None).unwrap();
            next += length;
        }
    });
    let (mut received, mut next) = (Vec::new(), 0);
    while next < count {
        reader.read(&mut received, None).unwrap();
        let length = received.len() as u64;
        assert_eq!(received, words(next..next + length));
        next += length;
    }
    sender.join().unwrap();
}

#[test]
fn burst_2_what_is_written_is_read_and_no_thread_sleeps_for_ever() {
    in_every_order(3, || all_packets_arrive(1, &[1, 1, 1]));
}

#[test]
fn burst_2_packets_of_different_lengths_go_round_the_ring() {
    in_every_order(2, || all_packets_arrive(3, &[2, 3, 1]));
}

/// Packets are seen as a whole: whoever looks finds none, or all of its data.
#[test]
fn burst_2_no_part_of_a_packet_is_read() {
    in_every_order(3, || {
        let (mut writer, mut reader) = ends(2);
        let sender = thread::spawn(move || assert!(writer.try_write(&words(0..2)).unwrap()));
        let mut received = Vec::new();
        if reader.try_read(&mut received).unwrap() {
            assert_eq!(received, words(0..2));
        } else {
            assert_eq!(received, []);
        }
        sender.join().unwrap();
    });
}

/// Thrown before, while or after somebody falls asleep.
#[test]
fn ipc_5_an_interrupt_is_never_slept_through() {
    in_every_order(3, || {
        let (writer, mut reader) = ends(1);
        let interrupt = reader.interrupt();
        let other = thread::spawn(move || {
            interrupt.throw();
            drop(writer);
        });
        assert_eq!(reader.read(&mut Vec::new(), None), Err(QueueError::Interrupted));
        other.join().unwrap();
    });
}

/// A packet and an interrupt at once: the packet is there, now or for the next who looks.
#[test]
fn ipc_5_an_interrupt_loses_no_packet() {
    in_every_order(3, || {
        let (mut writer, mut reader) = ends(1);
        let interrupt = reader.interrupt();
        let other = thread::spawn(move || {
            writer.write(&words(0..1), None).unwrap();
            interrupt.throw();
        });
        let mut received = Vec::new();
        match reader.read(&mut received, None) {
            Ok(()) => {}
            Err(QueueError::Interrupted) => assert!(reader.try_read(&mut received).unwrap()),
            Err(error) => panic!("{error}"),
        }
        assert_eq!(received, words(0..1));
        other.join().unwrap();
    });
}
