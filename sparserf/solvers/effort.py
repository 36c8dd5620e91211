"""The work that a fit may take: counted from shapes alone, so that it ends at the same place on any machine."""


class Effort:
    """Multiplications so far, and the most that there may be."""

    def __init__(self, most):
        self._most, self._spent = most, 0.0

    def add(self, multiplications):
        self._spent += multiplications

    def add_factor(self, p):
        """A Cholesky factor of p × p numbers: p³ / 6, at half the speed of a matrix product."""
        self.add(p**3 / 3)

    def forget(self):
        self._spent = 0.0

    @property
    def is_spent(self):
        return self._spent >= self._most


UNBOUNDED = Effort(float("inf"))
