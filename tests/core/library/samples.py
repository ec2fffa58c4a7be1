"""Items that every detector can find, and texts in which each of them is found."""

MATH = {
    "question": "A puppet theatre has twelve rows, and each row behind the first has two more "
    "seats than the row in front of it. The first row has ten seats. How many seats does the whole "
    "theatre have?",
    "answer": "The rows have 10, 12, 14 and so on up to 32 seats, which makes 252 seats together.",
}
HARBOUR = {
    "question": "Before noon a pilot boat leaves the harbour at a speed of nine knots, and two "
    "hours later a tug follows it on the same course at fifteen knots. After how many hours does "
    "the tug reach the boat?",
    "answer": "The tug reaches the boat three hours after it has left the harbour itself.",
}
PROGRAM = {
    "question": '''
def moving_average(values, window):
    """Return the mean of each run of `window` values in a list, from the first to the last."""
    total = 0.0
    means = []
    for position, value in enumerate(values):
        total += value
        if position >= window:
            total -= values[position - window]
        if position >= window - 1:
            means.append(total / window)
    return means
''',
    "answer": "moving_average([1, 2, 3, 4], 2) returns the list [1.5, 2.5, 3.5] of three means",
}
ITEMS = [MATH, HARBOUR, PROGRAM]

VERBATIM = f"An exercise. {MATH['question']} Answer: {MATH['answer']} So much for that."
NO_ANSWER = f"An exercise for you, without help: {HARBOUR['question']} Think about it."
RENAMED = (
    PROGRAM["question"]
    .replace("moving_average", "smooth")
    .replace("values", "numbers")
    .replace("value", "number")
    .replace("window", "width")
    .replace("total", "s")
    .replace("means", "out")
    .replace("position", "i")
)
REWORDED = (
    "At a speed of nine knots a pilot boat leaves the harbour before noon. On the same course a "
    "tug follows it two hours later, at fifteen knots. The tug reaches the boat after how many "
    "hours?"
)
CLEAN = "The weather in the valley was mild, and the market opened at eight as on every Monday."
TEXTS = [VERBATIM, CLEAN, NO_ANSWER, RENAMED, REWORDED]


def data_set(rows):
    """A Hugging Face dataset of these rows."""
    import datasets  # here, not in each process that looks for tests: it takes two seconds

    return datasets.Dataset.from_list([*rows])
