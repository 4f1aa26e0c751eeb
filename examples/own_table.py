"""A table of your own: four clinics, one model, and what each clinic was paid and contributed."""

import numpy as np

import bara
from bara.datasets import Dataset

dice = np.random.default_rng(0)
clinic = dice.choice(["Bergen", "Graz", "Porto", "Turku"], 400, p=[0.4, 0.3, 0.2, 0.1])
age, smoker = dice.normal(55, 12, 400), dice.choice(["yes", "no"], 400)
risk = (age - 55) / 12 + (smoker == "yes") + dice.normal(0, 0.5, 400)
visits = {"clinic": clinic, "age": age, "smoker": smoker, "ill": (risk > 0.5).astype(int)}

result = bara.run(
    data=Dataset.from_frame(visits, target="ill", client="clinic", name="visits"),
    training={"model": "linear", "metric": "auc", "learning_rate": 0.5},
    budget={"total": 30, "max_rounds": 10},
    allocator="even",
)
print(result)
for name, worth in result.contributions.items():
    print(
        f"{name}: paid {result.payments.get(name, 0):.2f}, contributed {100 * worth['mean']:+.2f} "
        f"points"
    )
