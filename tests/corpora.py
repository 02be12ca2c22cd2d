"""Text for tests that any machine has: Python's own documentation, and Korean sentences composed from a few parts."""

from random import Random

_WHO = "나는 우리는 학생들이 선생님께서 할머니가 고양이가 그 사람은 친구가 연구원들은 아이들이".split()
_WHEN = "어제 오늘 아침에 지난주에 봄마다 밤늦게 주말에 작년 겨울에 점심시간에 비가 오면".split()
_WHERE = "서울에서 학교에서 한강에서 시장에서 도서관에서 제주도에서 부엌에서 연구실에서 공원에서".split()
_WHAT = "책을 밥을 말모이를 사전을 노래를 자전거를 사진을 편지를 김치찌개를 인공지능을 꽃과 나무를".split()
_DOES = "읽었습니다. 먹었습니다. 모았습니다. 만들었습니다. 불렀어요. 탔어요! 찍었다. 썼을까요? 보았다.".split()


def python_documents() -> list[str]:
    """English prose of many pages: a document a topic of Python's language reference."""
    from pydoc_data.topics import topics

    return [topics[name] for name in sorted(topics)]


def korean_documents(count: int = 200, seed: int = 0) -> list[str]:
    """Korean documents of three to thirty sentences."""
    random = Random(seed)
    parts = (_WHO, _WHEN, _WHERE, _WHAT, _DOES)
    return [
        " ".join(" ".join(random.choice(part) for part in parts) for _ in range(random.randint(3, 30)))
        for _ in range(count)
    ]
