"""What a program may do next: functions of a writer, each with a weight. The families' files add theirs."""
ACTIONS = []


def action(weight):
    def add(function):
        ACTIONS.append((weight, function))
        return function

    return add


from . import elementwise, views, writes, reductions, indices, rows, graph  # noqa: E402, F401
