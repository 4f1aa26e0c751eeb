"""Models of an unknown function from few, noisy values: numpy and scipy, knows no federated learning."""

from bara.surrogates.newton import NewtonPolynomial
from bara.surrogates.time_varying_gp import DenseGP, KalmanGP, squared_exponential

__all__ = ["DenseGP", "KalmanGP", "NewtonPolynomial", "squared_exponential"]
