from malmoi.training.course import Course
from malmoi.training.options import TrainingOptions


def test_every_step_keeps_the_number_of_steps_it_was_made_with():
    course = Course(TrainingOptions(steps=100))
    course.turn(60, 200)
    assert [course.at(step).steps for step in (0, 59, 60, 150)] == [100, 100, 200, 200]
    course.turn(40, 300)  # from an earlier checkpoint: what was decided after it no longer holds
    assert course.turns == [(0, 100), (40, 300)]
    course.turn(0, 50)
    assert course.turns == [(0, 50)] and course.total == 50


def test_steps_are_fitted_to_the_time_left():
    course = Course(TrainingOptions(steps=1000, minutes=10))
    assert course.fit(100, 60.0, 600.0) is None  # just as fast as it was thought to be
    assert course.fit(100, 61.0, 600.0) is None  # or nearly so
    assert course.fit(100, 120.0, 600.0) == 500  # half as fast
    assert course.fit(100, 30.0, 600.0) == 2000
    assert course.fit(900, 700.0, 600.0) == 900  # the time is over
    assert [done for done in range(1, 201) if course.is_review(done)] == [50, 100, 150, 200]
