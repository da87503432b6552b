//! Steps of optimisers: from weights and the gradient of a loss to other weights. All of a step runs at once.

use crate::error::Result;
use crate::node::Tensor;

/// Adam by Kingma and Ba: each weight moves by the mean of its gradients over the root of the mean of their squares.
///
/// ```
/// use perpetua_device::{BackendKind, Device};
/// use perpetua_tensor::{Adam, Tensor};
/// let device = Device::new(BackendKind::Cpu, 0)?;
/// let mut adam = Adam::new([Tensor::from_slice(&[4.0f32], [1], &device)], 0.1);
/// for _ in 0..200 {
///     let loss = (&adam.weights()[0] - 3.0).square().sum(..);
///     adam.step(&loss)?;
/// }
/// assert!((adam.weights()[0].to_vec::<f32>()?[0] - 3.0).abs() < 1e-2);
/// # Ok::<(), perpetua_tensor::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Adam {
    /// How far a step goes.
    pub rate: f64,
    /// How much of the means of gradients and of their squares stays at each step: 0.9 and 0.999.
    pub betas: [f64; 2],
    /// What is added to the root: 1e-8.
    pub epsilon: f64,
    /// How much of the weights goes at each step, times the rate: 0. (With more it is AdamW.)
    pub decay: f64,
    steps: i32,
    weights: Vec<Tensor>,
    means: Vec<[Tensor; 2]>,
}

impl Adam {
    /// With these weights, which are tracked from now on.
    #[track_caller]
    pub fn new(weights: impl IntoIterator<Item = Tensor>, rate: f64) -> Adam {
        let at = here!();
        let weights: Vec<Tensor> = weights.into_iter().map(|weight| weight.tracked()).collect();
        let zeros = |weight: &Tensor| weight.fixed(0.0, at);
        Adam {
            rate,
            betas: [0.9, 0.999],
            epsilon: 1e-8,
            decay: 0.0,
            steps: 0,
            means: weights
                .iter()
                .map(|weight| [zeros(weight), zeros(weight)])
                .collect(),
            weights,
        }
    }

    /// The weights as they are now, in their order.
    pub fn weights(&self) -> &[Tensor] {
        &self.weights
    }

    /// One step down the gradient of a loss that is made of the weights. An error leaves the weights as they were.
    ///
    /// # Errors
    /// As [`Tensor::grad`] and [`Tensor::realize`].
    #[track_caller]
    pub fn step(&mut self, loss: &Tensor) -> Result<()> {
        let by: Vec<&Tensor> = self.weights.iter().collect();
        let gradients = loss.grad(&by)?;
        self.step_with(&gradients)
    }

    /// One step down gradients by the weights, in their order: those that were added up over several losses ([`Tensor::backward`]), or clipped
    /// ([`clip_grad_norm`](crate::clip_grad_norm)). An error leaves the weights as they were.
    ///
    /// # Errors
    /// If there are not as many as weights, each in its weight's shape; as [`Tensor::realize`].
    #[track_caller]
    pub fn step_with(&mut self, gradients: &[Tensor]) -> Result<()> {
        let at = here!();
        let pairs = || self.weights.iter().zip(gradients);
        let fits = pairs().all(|(weight, gradient)| weight.shape() == gradient.shape());
        if let (Some(first), false) = (
            self.weights.first(),
            fits && gradients.len() == self.weights.len(),
        ) {
            let (found, expected) = (gradients.len(), self.weights.len());
            let rule = format!("{found} gradients for {expected} weights: give each its own, in its shape");
            first.refuse("step_with", &[], rule, at).check()?;
        }
        crate::place::inside(at, || {
            let steps = self.steps.saturating_add(1);
            let [first, second] = self.betas;
            let rate = self.rate * (1.0 - second.powi(steps)).sqrt() / (1.0 - first.powi(steps));
            let (mut weights, mut means) = (Vec::new(), Vec::new());
            for ((weight, gradient), [mean, square]) in self.weights.iter().zip(gradients).zip(&self.means) {
                let mean = mean * first + gradient * (1.0 - first);
                let square = square * second + gradient.square() * (1.0 - second);
                let own = weight.detach();
                let kept = match self.decay {
                    0.0 => own,
                    decay => own * (1.0 - self.rate * decay),
                };
                let next = kept - &mean / (square.sqrt() + self.epsilon) * rate;
                weights.push(next.tracked());
                means.push([mean, square]);
            }
            let all: Vec<&Tensor> = weights.iter().chain(means.iter().flatten()).collect();
            Tensor::realize_all(&all)?;
            (self.steps, self.weights, self.means) = (steps, weights, means);
            Ok(())
        })
    }
}
