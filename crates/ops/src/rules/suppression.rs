//! Non-maximum suppression: of boxes that overlap, the one with the highest score is kept.

use crate::call::Call;
use crate::error::Fault;
use crate::rules::bounding_box::BoundingBox;
use crate::rules::sorting::sort;
use std::cmp::Ordering;

/// A box that may be kept, with its score for one class.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Which box, among the boxes that compete.
    pub index: usize,
    /// Which class; 0 is the background.
    pub class: usize,
    /// How likely the box shows something of the class.
    pub score: f32,
}

/// Higher scores first; NaN comes last.
pub fn descending(a: f32, b: f32) -> Ordering {
    b.partial_cmp(&a).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Puts higher scores first. Equal ones keep their order.
///
/// # Errors
/// As [`sort`].
pub fn sort_by_score(call: &Call<'_>, candidates: &mut Vec<Candidate>) -> Result<(), Fault> {
    sort(call, candidates, |a, b| descending(a.score, b.score))
}

/// Hard suppression: a score stays as it is while the overlap with what was kept is below the
/// threshold, and the box is dropped otherwise.
pub fn hard(threshold: f32) -> impl Fn(f32, f32) -> Option<f32> {
    move |score, overlap| (overlap < threshold).then_some(score)
}

/// Keeps the candidate with the highest score, asks `lower` for the new score of every other one,
/// given its score and its overlap with the one just kept, drops those without a new score, and
/// starts again, until `limit` candidates are kept. Of equal scores the first one wins.
///
/// The result is in the order of keeping.
///
/// # Errors
/// [`Fault::OutOfMemory`], [`Fault::Interrupted`]
pub fn suppress(
    call: &Call<'_>,
    mut pending: Vec<Candidate>,
    limit: usize,
    bounding_box: impl Fn(&Candidate) -> BoundingBox,
    lower: impl Fn(f32, f32) -> Option<f32>,
) -> Result<Vec<Candidate>, Fault> {
    let mut kept = Vec::new();
    while kept.len() < limit {
        let mut first: Option<(usize, f32)> = None;
        call.each(pending.iter().enumerate(), |(index, candidate)| {
            let is_higher = |(_, score)| descending(candidate.score, score).is_lt();
            if first.is_none_or(is_higher) {
                first = Some((index, candidate.score));
            }
        })?;
        let Some((best, _)) = first else { break };
        let best = pending.remove(best);
        let best_box = bounding_box(&best);
        let mut staying = 0;
        call.each(0..pending.len(), |index| {
            let mut candidate = pending[index];
            let overlap = bounding_box(&candidate).intersection_over_union(best_box);
            if let Some(score) = lower(candidate.score, overlap) {
                candidate.score = score;
                pending[staying] = candidate;
                staying += 1;
            }
        })?;
        pending.truncate(staying);
        call.push(&mut kept, best)?;
    }
    Ok(kept)
}

/// Suppression for every class but the background on its own, then the highest scores of all
/// classes.
#[derive(Debug, Clone, Copy)]
pub struct MultiClass {
    /// How many classes each box has a score for, with the background.
    pub classes: usize,
    /// Only scores above it compete.
    pub score_threshold: f32,
    /// Most boxes of one class.
    pub class_limit: usize,
    /// Most boxes of all classes together.
    pub limit: usize,
}

impl MultiClass {
    /// Chooses from boxes with scores `[box, class]`. Highest scores come first.
    ///
    /// # Errors
    /// As [`suppress`].
    pub fn select(
        &self,
        call: &Call<'_>,
        scores: &[f32],
        bounding_box: impl Fn(&Candidate) -> BoundingBox,
        lower: impl Fn(f32, f32) -> Option<f32>,
    ) -> Result<Vec<Candidate>, Fault> {
        let mut selected = Vec::new();
        if scores.is_empty() {
            return Ok(selected);
        }
        for class in 1..self.classes {
            let competing = scores
                .chunks_exact(self.classes)
                .enumerate()
                .map(|(index, scores)| Candidate { index, class, score: scores[class] });
            let mut candidates = Vec::new();
            for candidate in competing {
                call.work(1)?;
                if candidate.score > self.score_threshold {
                    call.push(&mut candidates, candidate)?;
                }
            }
            let kept = suppress(call, candidates, self.class_limit, &bounding_box, &lower)?;
            for candidate in kept {
                call.push(&mut selected, candidate)?;
            }
        }
        sort_by_score(call, &mut selected)?;
        selected.truncate(self.limit);
        Ok(selected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Interrupt;
    use nnhal_hal::OperationType;
    use proptest::prelude::*;

    fn suppress(
        pending: Vec<Candidate>,
        limit: usize,
        bounding_box: impl Fn(&Candidate) -> BoundingBox,
        lower: impl Fn(f32, f32) -> Option<f32>,
    ) -> Vec<Candidate> {
        super::suppress(&call(), pending, limit, bounding_box, lower).unwrap()
    }

    fn call() -> Call<'static> {
        Call::new(OperationType::BoxWithNmsLimit, [], [])
    }

    #[test]
    fn what_is_over_goes_no_further() {
        let stop = || true;
        let call = call().with_interrupt(Interrupt(&stop));
        let places: Vec<f32> = (0..2000_u16).map(|place| 10.0 * f32::from(place)).collect();
        let outcome =
            super::suppress(&call, candidates(&places), usize::MAX, at(&places), hard(0.5));
        assert!(matches!(outcome, Err(Fault::Interrupted { .. })));
    }

    /// Boxes of width 4 and height 1 that begin at these places.
    fn at(places: &[f32]) -> impl Fn(&Candidate) -> BoundingBox {
        move |candidate| {
            let x1 = places[candidate.index];
            BoundingBox { x1, y1: 0.0, x2: x1 + 4.0, y2: 1.0 }
        }
    }

    fn candidates(scores: &[f32]) -> Vec<Candidate> {
        let candidate =
            |(index, score): (usize, &f32)| Candidate { index, class: 1, score: *score };
        scores.iter().enumerate().map(candidate).collect()
    }

    fn indexes(kept: &[Candidate]) -> Vec<usize> {
        kept.iter().map(|candidate| candidate.index).collect()
    }

    #[test]
    fn hard_suppression_by_hand() {
        // Shifted by 1: 3 / 5 overlap; by 2: 2 / 6; by 3: 1 / 7.
        let places = [0.0, 1.0, 2.0, 3.0];
        let scores = candidates(&[0.5, 0.9, 0.8, 0.7]);
        let kept = |threshold, limit| {
            indexes(&suppress(scores.clone(), limit, at(&places), hard(threshold)))
        };
        assert_eq!(kept(0.5, 9), [1, 3]);
        assert_eq!(kept(0.61, 9), [1, 2, 3, 0]);
        assert_eq!(kept(0.3, 9), [1]);
        assert_eq!(kept(0.5, 1), [1]);
        assert_eq!(kept(0.5, 0), [0_usize; 0]);
    }

    #[test]
    fn equal_scores_keep_their_order_and_nan_is_last() {
        let places = [0.0, 10.0, 20.0, 30.0];
        let scores = candidates(&[f32::NAN, 0.5, 0.5, 0.7]);
        assert_eq!(indexes(&suppress(scores, 9, at(&places), hard(0.5))), [3, 1, 2, 0]);
    }

    #[test]
    fn lowered_scores_compete_anew() {
        let places = [0.0, 1.0, 20.0];
        let lower = |score: f32, overlap: f32| Some(score * (1.0 - overlap)).filter(|it| *it > 0.2);
        // 0.8 * (1 - 0.6) = 0.32, which now comes after 0.5.
        let kept = suppress(candidates(&[0.9, 0.8, 0.5]), 9, at(&places), lower);
        assert_eq!(indexes(&kept), [0, 2, 1]);
        assert!((kept[2].score - 0.32).abs() < 1e-6);
        let kept = suppress(candidates(&[0.9, 0.4, 0.5]), 9, at(&places), lower);
        assert_eq!(indexes(&kept), [0, 2]);
    }

    #[test]
    fn classes_do_not_suppress_each_other_and_the_background_takes_no_part() {
        let rule = MultiClass { classes: 3, score_threshold: 0.25, class_limit: 9, limit: 9 };
        let scores = [9.0, 0.5, 0.625, 9.0, 0.75, 0.25];
        let found = rule.select(&call(), &scores, at(&[0.0, 1.0]), hard(0.5)).unwrap();
        let expected = [
            Candidate { index: 1, class: 1, score: 0.75 },
            Candidate { index: 0, class: 2, score: 0.625 },
        ];
        assert_eq!(found, expected);
        let rule = MultiClass { limit: 1, ..rule };
        let found = rule.select(&call(), &scores, at(&[0.0, 1.0]), hard(0.5)).unwrap();
        assert_eq!(found, expected[..1]);
    }

    proptest! {
        #[test]
        fn what_is_kept_does_not_overlap_and_what_is_dropped_does(
            boxes in prop::collection::vec((0.0..20.0_f32, 0.0..1.0_f32), 0..20),
            threshold in 0.1..0.9_f32,
        ) {
            let (places, scores): (Vec<f32>, Vec<f32>) = boxes.into_iter().unzip();
            let all = candidates(&scores);
            let bounding_box = at(&places);
            let overlap = |a, b| bounding_box(a).intersection_over_union(bounding_box(b));
            let kept = suppress(all.clone(), usize::MAX, &bounding_box, hard(threshold));
            prop_assert!(kept.is_sorted_by(|a, b| a.score >= b.score));
            for (position, a) in kept.iter().enumerate() {
                for b in &kept[..position] {
                    prop_assert!(overlap(a, b) < threshold);
                }
            }
            for dropped in all.iter().filter(|it| !kept.contains(it)) {
                prop_assert!(
                    kept.iter().any(|it| it.score >= dropped.score && overlap(it, dropped) >= threshold)
                );
            }
        }
    }
}
