//! Recurrent networks: LSTM, RNN, SVDF and their sequences.

use super::{GraphImporter, Imported};
use crate::error::Reason;
use crate::file::Operator;
use crate::schema::BuiltinOperator as B;

impl GraphImporter<'_, '_> {
    pub(super) fn recurrent(&mut self, builtin: B, _operator: &Operator<'_>) -> Option<Imported> {
        Some(match builtin {
            B::Lstm
            | B::UnidirectionalSequenceLstm
            | B::BidirectionalSequenceLstm
            | B::Rnn
            | B::UnidirectionalSequenceRnn
            | B::BidirectionalSequenceRnn
            | B::Svdf
            | B::LshProjection
            | B::HashtableLookup => Err(Reason::new("its import is not written yet")),
            _ => return None,
        })
    }

    pub(super) fn detection_postprocessing(&mut self, _operator: &Operator<'_>) -> Imported {
        Err(Reason::new("its import is not written yet"))
    }
}
