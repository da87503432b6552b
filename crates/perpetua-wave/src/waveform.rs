//! What a source does over time. Must not know where it stands.

use std::f64::consts::{PI, TAU};

/// A signal over time, of amplitude 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Waveform {
    /// One kick at the start: all frequencies at once.
    Impulse,
    /// A sine that swells over three periods.
    Sine {
        /// In Hz.
        frequency: f64,
    },
    /// The second derivative of a Gaussian (N. Ricker, Geophysics 18, 1953): a short pulse.
    Ricker {
        /// Frequency of the spectrum's peak, in Hz.
        frequency: f64,
    },
}

impl Waveform {
    /// The signal at `time` seconds; zero before 0. An impulse is 1 during the first `step` seconds.
    pub fn at(self, time: f64, step: f64) -> f64 {
        if time < 0.0 {
            return 0.0;
        }
        match self {
            Waveform::Impulse => f64::from(u8::from(time < step * 0.999)),
            Waveform::Sine { frequency } => {
                let turns = time * frequency;
                let swell = (turns / 3.0).min(1.0);
                swell * swell * (3.0 - 2.0 * swell) * (TAU * turns.fract()).sin()
            }
            Waveform::Ricker { frequency } => {
                let a = PI * frequency * (time - self.delay());
                (1.0 - 2.0 * a * a) * (-a * a).exp()
            }
        }
    }

    /// When a pulse has its peak, in seconds.
    pub fn delay(self) -> f64 {
        match self {
            Waveform::Impulse | Waveform::Sine { .. } => 0.0,
            Waveform::Ricker { frequency } => 1.5 / frequency,
        }
    }

    /// The frequency, in Hz, where there is one.
    pub fn frequency(self) -> Option<f64> {
        match self {
            Waveform::Impulse => None,
            Waveform::Sine { frequency } | Waveform::Ricker { frequency } => Some(frequency),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_start_at_rest_and_reach_one() {
        let step = 1e-3;
        let check = |waveform: Waveform| {
            let values: Vec<f64> = (0..4000)
                .map(|i| waveform.at(f64::from(i) * step, step))
                .collect();
            let most = values.iter().copied().fold(f64::MIN, f64::max);
            assert!((most - 1.0).abs() < 1e-3, "{waveform:?}: {most}");
            assert_eq!(waveform.at(-step, step), 0.0);
            if waveform != Waveform::Impulse {
                assert!(values[0].abs() < 1e-6, "{waveform:?}: {}", values[0]);
            }
        };
        check(Waveform::Impulse);
        check(Waveform::Sine { frequency: 2.0 });
        check(Waveform::Ricker { frequency: 2.0 });
    }
}
