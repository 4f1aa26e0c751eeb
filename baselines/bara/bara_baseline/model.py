"""The model, one gradient step on it, and its score.

torch is imported where it is used: a bid needs none.
"""


def make_model(seed):
    import torch

    torch.manual_seed(seed)
    layers = [torch.nn.Linear(64, 200), torch.nn.ReLU(), torch.nn.Linear(200, 200), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(200, 10))


def load_model(arrays):
    model = make_model(0)
    model.load_state_dict(arrays.to_torch_state_dict())
    return model


def step(model, x, y, learning_rate):
    """Take one gradient step on all of a client's data (the paper's ClientUpdate).

    Returns the loss before the step.
    """
    import torch

    loss = torch.nn.functional.cross_entropy(model(torch.from_numpy(x)), torch.from_numpy(y))
    loss.backward()
    torch.optim.SGD(model.parameters(), lr=learning_rate).step()
    return loss.item()


def score(model, x, y):
    """Accuracy and mean loss."""
    import torch

    with torch.no_grad():
        scores = model(torch.from_numpy(x))
    y = torch.from_numpy(y)
    return (scores.argmax(1) == y).float().mean().item(), torch.nn.functional.cross_entropy(
        scores, y
    ).item()
