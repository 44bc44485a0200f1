//! The network, and what its outputs mean.

use crate::photo::SIZE;
use nnhal::{Model, Result, Session, SessionOptions, Tensor};
use std::path::Path;

/// Candidates that the network scores.
const ANCHORS: usize = 896;
/// Numbers that describe a candidate: centre, size, six points.
const NUMBERS: usize = 16;
/// Scores below this are no faces.
const LEAST_SCORE: f32 = 0.5;
/// Boxes that share more than this are one face.
const SAME_FACE: f32 = 0.3;

/// A prepared network.
pub struct Detector {
    session: Session,
}

/// What the network says of a picture.
pub struct Outputs {
    /// [`NUMBERS`] for each anchor, in pixels of the input.
    pub regressors: Vec<f32>,
    /// One for each anchor, before the sigmoid.
    pub classificators: Vec<f32>,
}

/// A face; positions are fractions of the square that the photograph was centred on.
#[derive(Debug, Clone)]
pub struct Face {
    /// From 0 to 1.
    pub score: f32,
    /// Left top and right bottom.
    pub corners: [[f32; 2]; 2],
    /// Eyes, nose, mouth, ears.
    pub points: [[f32; 2]; 6],
}

impl Detector {
    /// Reads and prepares the network.
    pub fn new(path: &Path) -> Result<Self> {
        let session = Model::load(path)?.session(SessionOptions::new())?;
        Ok(Self { session })
    }

    /// Runs the network on an input of [`crate::photo::to_input`].
    pub fn run(&self, input: &[f32]) -> Result<Outputs> {
        let outputs = self.session.run([input])?;
        let output = |name: &str| -> Result<Vec<f32>> {
            let missing = || nnhal::Error::NotFound {
                what: "output",
                name: name.to_owned(),
                available: outputs.names().to_vec(),
            };
            outputs.get(name).ok_or_else(missing).and_then(Tensor::to_vec)
        };
        let (regressors, classificators) = (output("regressors")?, output("classificators")?);
        if classificators.len() != ANCHORS {
            let (data_type, shape) = (nnhal::DataType::Float32, vec![1, ANCHORS, 1]);
            let found = size_of::<f32>() * classificators.len();
            return Err(nnhal::Error::Elements { data_type, shape, found });
        }
        Ok(Outputs { regressors, classificators })
    }
}

/// The centres of all anchors: a grid of 16 by 16 with two each, then one of 8 by 8 with six.
fn anchors() -> impl Iterator<Item = [f32; 2]> {
    [(16_u8, 2), (8, 6)].into_iter().flat_map(|(cells, each)| {
        let centre = move |cell: u8| (f32::from(cell) + 0.5) / f32::from(cells);
        (0..cells).flat_map(move |row| {
            (0..cells)
                .flat_map(move |column| std::iter::repeat_n([centre(column), centre(row)], each))
        })
    })
}

/// The faces that the outputs describe, best first.
pub fn decode(outputs: &Outputs) -> Vec<Face> {
    let (boxes, _) = outputs.regressors.as_chunks::<NUMBERS>();
    let mut candidates: Vec<Face> = outputs
        .classificators
        .iter()
        .zip(boxes)
        .zip(anchors())
        .map(|((score, numbers), anchor)| {
            let score = 1.0 / (1.0 + (-score.clamp(-100.0, 100.0)).exp());
            face(score, numbers, anchor)
        })
        .filter(|candidate| candidate.score >= LEAST_SCORE)
        .collect();
    candidates.sort_by(|one, other| other.score.total_cmp(&one.score));
    let mut faces = Vec::new();
    while !candidates.is_empty() {
        let best = candidates.remove(0);
        let (mut same, others): (Vec<_>, Vec<_>) = candidates
            .into_iter()
            .partition(|candidate| overlap(&best.corners, &candidate.corners) > SAME_FACE);
        same.push(best.clone());
        faces.push(average(best, &same));
        candidates = others;
    }
    faces
}

fn face(score: f32, numbers: &[f32; NUMBERS], [x, y]: [f32; 2]) -> Face {
    let [centre, size, points @ ..] =
        [0, 1, 2, 3, 4, 5, 6, 7].map(|pair| [numbers[2 * pair], numbers[2 * pair + 1]]);
    let scale = f32::from(SIZE);
    let from_anchor = |[dx, dy]: [f32; 2]| [x + dx / scale, y + dy / scale];
    let [centre_x, centre_y] = from_anchor(centre);
    let half = size.map(|length| length / scale / 2.0);
    Face {
        score,
        corners: [
            [centre_x - half[0], centre_y - half[1]],
            [centre_x + half[0], centre_y + half[1]],
        ],
        points: points.map(from_anchor),
    }
}

/// Intersection over union.
fn overlap(one: &[[f32; 2]; 2], other: &[[f32; 2]; 2]) -> f32 {
    let area = |[from, to]: [[f32; 2]; 2]| (to[0] - from[0]).max(0.0) * (to[1] - from[1]).max(0.0);
    let shared = area([
        [one[0][0].max(other[0][0]), one[0][1].max(other[0][1])],
        [one[1][0].min(other[1][0]), one[1][1].min(other[1][1])],
    ]);
    let union = area(*one) + area(*other) - shared;
    if union > 0.0 { shared / union } else { 0.0 }
}

/// One face out of several views of it, weighted by score; its score is the best one's.
fn average(best: Face, same: &[Face]) -> Face {
    let total: f32 = same.iter().map(|face| face.score).sum();
    let mean = |position: &dyn Fn(&Face) -> [f32; 2]| {
        same.iter().fold([0.0; 2], |[x, y], face| {
            let [of_x, of_y] = position(face);
            [x + of_x * face.score / total, y + of_y * face.score / total]
        })
    };
    Face {
        score: best.score,
        corners: [0, 1].map(|corner| mean(&|face| face.corners[corner])),
        points: [0, 1, 2, 3, 4, 5].map(|point| mean(&|face| face.points[point])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_an_anchor_for_each_score() {
        let all: Vec<_> = anchors().collect();
        assert_eq!(all.len(), ANCHORS);
        assert_eq!(all[0], [0.5 / 16.0, 0.5 / 16.0]);
        assert_eq!(all[2], [1.5 / 16.0, 0.5 / 16.0]);
        assert_eq!(all[512], [0.5 / 8.0, 0.5 / 8.0]);
    }

    #[test]
    fn two_views_of_one_face_become_one() {
        let mut outputs = Outputs {
            regressors: vec![0.0; ANCHORS * NUMBERS],
            classificators: vec![-50.0; ANCHORS],
        };
        for anchor in [0, 1] {
            outputs.classificators[anchor] = 2.0;
            outputs.regressors[anchor * NUMBERS + 2..anchor * NUMBERS + 4].fill(64.0);
        }
        let faces = decode(&outputs);
        assert_eq!(faces.len(), 1);
        let width = faces[0].corners[1][0] - faces[0].corners[0][0];
        assert!((width - 0.5).abs() < 1e-6);
    }

    #[test]
    fn a_box_without_area_is_kept_and_does_not_hang() {
        let mut outputs = Outputs {
            regressors: vec![0.0; ANCHORS * NUMBERS],
            classificators: vec![-50.0; ANCHORS],
        };
        outputs.classificators[3] = 2.0;
        assert_eq!(decode(&outputs).len(), 1);
    }
}
