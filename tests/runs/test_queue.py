"""Who is at a place stays there; others go where the fewest are; a job that comes back is done first."""

from dataclasses import dataclass
from itertools import pairwise

from interp.runs.workers import JobQueue


@dataclass(frozen=True)
class Job:
    place: int
    number: int


def test_jobs_without_a_place_come_in_order():
    queue = JobQueue([3, 1, 2])
    assert [queue.next() for _ in range(3)] == [3, 1, 2]
    assert not queue


def test_workers_keep_to_their_places_and_share_out_the_rest():
    jobs = [Job(place, number) for place in range(3) for number in range(4)]
    queue, last, places = JobQueue(jobs), {0: None, 1: None}, {0: [], 1: []}
    done = []
    while queue:
        for worker in (0, 1):
            if queue:
                last[worker] = queue.next(last[worker])
                places[worker].append(last[worker].place)
                done.append(last[worker])
    assert sorted(done, key=lambda job: (job.place, job.number)) == jobs
    changes = [sum(one != other for one, other in pairwise(each)) for each in places.values()]
    assert changes == [1, 1], "each place but the last is one worker's alone"


def test_a_job_that_comes_back_is_done_first():
    queue = JobQueue([Job(0, 0), Job(0, 1), Job(1, 0)])
    job = queue.next()
    queue.back(job)
    assert queue.next() == job == Job(0, 0)


def test_an_iterator_is_asked_for_a_job_when_one_is_wanted():
    asked = []

    def jobs():
        for number in range(3):
            asked.append(number)
            yield number

    queue = JobQueue(jobs())
    assert asked == []
    assert queue
    assert queue
    assert asked == [0]
    assert queue.next() == 0
    assert queue
    queue.back(0)
    assert [queue.next() for _ in range(2) if queue] == [0, 1]
    assert queue
    assert queue.next() == 2
    assert not queue
