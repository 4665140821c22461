"""Routing by patterns of words: `*` is one word, `#` any number of them, none included.

Comes in: patterns with their ends, and keys. Goes out: the ends of all patterns that match. A pattern without `*` and
`#` is looked up as it is. The others are paths in a trie, walked word by word with all branches at once that the
key's words so far lead to: a key costs at most its words times the branches it can reach, whatever the patterns are,
and nothing for patterns that begin otherwise. An empty key or pattern has no words.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from interlog.core.routing import End, Headers, KeyedEnds, delete_end, insert_end


def words_of(key: str) -> list[str]:
    return key.split(".") if key else []


class _Branch:
    """What may follow, by its word, `*` and `#` among them, and the ends of the patterns that are over here."""

    __slots__ = ("children", "ends", "takes_all")

    def __init__(self, takes_all: bool) -> None:
        self.takes_all = takes_all  # the word before was "#": any word leads here again
        self.children: dict[str, _Branch] | None = None
        self.ends: list[End] | None = None


class TopicRouter:
    by_key = True

    def __init__(self) -> None:
        self._exact = KeyedEnds()
        self._root = _Branch(False)

    def check(self, key: str, arguments: Mapping[str, Any]) -> None:
        """Any key is a pattern."""

    def add(self, end: End, key: str, arguments: Mapping[str, Any]) -> None:
        words = words_of(key)
        if "*" not in words and "#" not in words:
            self._exact.add(key, end)
            return
        branch = self._root
        for word in words:
            if branch.children is None:
                branch.children = {}
            child = branch.children.get(word)
            if child is None:
                child = branch.children[word] = _Branch(word == "#")
            branch = child
        if branch.ends is None:
            branch.ends = [end]
        else:
            insert_end(branch.ends, end)

    def remove(self, end: End, key: str, arguments: Mapping[str, Any]) -> None:
        words = words_of(key)
        if "*" not in words and "#" not in words:
            self._exact.remove(key, end)
            return
        path = [self._root]
        for word in words:
            children = path[-1].children
            assert children is not None, "only what was added is removed"
            path.append(children[word])
        ends = path[-1].ends
        assert ends is not None, "only what was added is removed"
        delete_end(ends, end)
        if ends:
            return
        path.pop().ends = None
        for word, parent in zip(reversed(words), reversed(path), strict=True):
            assert parent.children is not None, "a child has a parent"
            child = parent.children[word]
            if child.children is not None or child.ends is not None:
                return
            del parent.children[word]
            if not parent.children:
                parent.children = None

    def match(self, keys: Sequence[str], headers: Headers) -> Sequence[End]:
        if self._root.children is None and len(keys) == 1:
            return self._exact.get(keys[0])
        found: list[End] = []
        for key in keys:
            found += self._exact.get(key)
            if self._root.children is not None:
                self._walk(words_of(key), found)
        return found

    def _walk(self, words: list[str], found: list[End]) -> None:
        here: dict[_Branch, None] = {}
        _enter(self._root, here)
        for word in words:
            onward: dict[_Branch, None] = {}
            for branch in here:
                if branch.takes_all:
                    onward[branch] = None
                children = branch.children
                if children is not None:
                    # A word "*" or "#" in a key finds the child of that name, which takes any word anyway.
                    child = children.get(word)
                    if child is not None:
                        _enter(child, onward)
                    child = children.get("*")
                    if child is not None:
                        _enter(child, onward)
            if not onward:
                return
            here = onward
        for branch in here:
            if branch.ends is not None:
                found += branch.ends


def _enter(branch: _Branch | None, into: dict[_Branch, None]) -> None:
    """A branch, and what follows it by a `#` that stands for no word."""
    while branch is not None and branch not in into:
        into[branch] = None
        branch = branch.children.get("#") if branch.children is not None else None
