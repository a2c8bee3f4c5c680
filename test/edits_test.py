#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tests edits.py: what edits do, and the edits that it refuses."""

import unittest

from edits import EditError, edited

IR = """\
module {
  zrt.program @train on @cluster {
    zrt.buffer @b0.m : !zero.value<128xf32> role state in device
    zrt.scalars @scalars {
      %0 = zrt.load_slot @sums[0]
      %1 = arith.mulf %0, %0 : f64
      zrt.store_slot %1, @scalar[0]
      zrt.yield
    }
    zrt.scalars @scalars_2 {
      %cst = arith.constant 2.000000e+00 : f64
      %0 = zrt.load_slot @sums[1]
      %1 = arith.mulf %0, %cst : f64
      zrt.store_slot %1, @scalar_2[0]
      zrt.yield
    }
    zrt.handler @finish {
      zrt.count_arrivals to @arrivals
      zrt.run_scalars @scalars
      zrt.run_scalars @scalars_2
      zrt.commit @outcome
    }
    zrt.handler @finish_last {
      zrt.commit @outcome
    }
  }
}
"""


def changes(edits: str, ir: str = IR) -> list[str]:
    """The lines that edits remove and add, without indentation."""
    import difflib

    old, new = ir.splitlines(), edited(ir, edits).splitlines()
    lines = list(difflib.unified_diff(old, new, n=0, lineterm=""))[2:]
    return [line[0] + line[1:].strip() for line in lines if line[0] in "-+"]


class Applies(unittest.TestCase):
    def test_values_match_whatever_their_number(self) -> None:
        edit = """@@ zrt.scalars @scalars_2
 %a = zrt.load_slot @sums[1]
...
-zrt.store_slot %b, @scalar_2[0]
+zrt.store_slot %a, @scalar_2[0]
"""
        expected = [
            "-zrt.store_slot %1, @scalar_2[0]",
            "+zrt.store_slot %0, @scalar_2[0]",
        ]
        self.assertEqual(changes(edit), expected)
        for number in "10":
            renumbered = IR.replace(f"%{number}", f"%{int(number) + 10}")
            self.assertEqual(len(changes(edit, renumbered)), 2)

    def test_text_that_is_matched_comes_again(self) -> None:
        edit = """@@ zrt.program
-zrt.buffer @b0.m : $type role state $rest
+zrt.buffer @b0.m : $type role gradient $rest
"""
        expected = "+zrt.buffer @b0.m : !zero.value<128xf32> role gradient in device"
        self.assertEqual(changes(edit)[1], expected)

    def test_text_at_the_end_may_be_missing(self) -> None:
        edit = """@@ zrt.handler @finish_last
-zrt.commit @outcome $attributes
+zrt.commit @other $attributes
"""
        self.assertEqual(changes(edit)[1].rstrip(), "+zrt.commit @other")

    def test_one_of_several_regions(self) -> None:
        edit = """@@ zrt.scalars
-zrt.store_slot %1, @scalar_2[0]
"""
        self.assertEqual(changes(edit), ["-zrt.store_slot %1, @scalar_2[0]"])

    def test_other_names_are_other_values(self) -> None:
        edit = """@@ zrt.scalars
-%x = arith.mulf %a, %b : f64
+%x = arith.mulf %b, %b : f64
"""
        self.assertEqual(changes(edit)[1], "+%1 = arith.mulf %cst, %cst : f64")

    def test_new_values_get_new_names(self) -> None:
        edit = """@@ zrt.scalars @scalars_2
-%x = arith.mulf %a, %b : f64
+%cst = arith.constant 3.0 : f64
+%x = arith.mulf %a, %cst : f64
"""
        added = changes(edit)[1:]
        name = added[0][1:].split(" ")[0]
        self.assertNotEqual(name, "%cst")
        self.assertEqual(added[1], f"+%1 = arith.mulf %0, {name} : f64")

    def test_lines_go_where_they_stand(self) -> None:
        edit = """@@ zrt.handler @finish_last
+zrt.fill_missing @b0
 zrt.commit @outcome
+zrt.fill_missing @b1
"""
        new = edited(IR, edit).splitlines()
        place = next(i for i, line in enumerate(new) if "fill_missing @b0" in line)
        self.assertIn("fill_missing @b1", new[place + 2])

    def test_lines_alone_go_to_the_end_of_the_region(self) -> None:
        edit = """@@ zrt.program
+zrt.handler @reset {
+  zrt.commit @outcome
+}
"""
        ending = edited(IR, edit).splitlines()[-5:]
        self.assertEqual(ending[0], "    zrt.handler @reset {")
        self.assertEqual(ending[1], "      zrt.commit @outcome")

    def test_copy(self) -> None:
        edit = """@@ copy zrt.scalars as @twin
 zrt.store_slot %x, @scalar_2[0]

# The copy alone is edited.
@@ zrt.scalars @twin
-zrt.store_slot %x, @scalar_2[0]
"""
        self.assertEqual(edited(IR, edit).count("@scalar_2[0]"), 1)
        self.assertEqual(edited(IR, edit).count("zrt.scalars @twin {"), 1)

    def test_edits_follow_each_other(self) -> None:
        edit = """@@ zrt.handler @finish_last
-zrt.commit @outcome
+zrt.commit @other

@@ zrt.handler @finish_last
-zrt.commit @other
"""
        self.assertEqual(changes(edit), ["-zrt.commit @outcome"])


class Refuses(unittest.TestCase):
    def refuses(self, edit: str, *messages: str) -> None:
        with self.assertRaises(EditError) as caught:
            edited(IR, edit)
        for message in messages:
            self.assertIn(message, str(caught.exception))

    def test_no_match_shows_the_nearest_lines(self) -> None:
        edit = """@@ zrt.handler @finish
-zrt.run_scalars @scalars_3
"""
        self.refuses(
            edit,
            "2: error: no such line in 'zrt.handler @finish': zrt.run_scalars",
            "     20:",
            "@scalars_2",
        )

    def test_the_line_that_does_not_match_is_named(self) -> None:
        edit = """@@ zrt.handler @finish
 zrt.count_arrivals to @arrivals
-zrt.run_scalars @scalars_2
"""
        self.refuses(edit, "3: error: no such line", "zrt.run_scalars")

    def test_two_matches_are_shown(self) -> None:
        edit = """@@ zrt.handler @finish
-zrt.run_scalars $scalars
"""
        self.refuses(edit, "1: error: more than one place", "     19:", "     20:")

    def test_two_regions_match(self) -> None:
        edit = """@@ zrt.scalars
-%0 = zrt.load_slot $slot
"""
        self.refuses(edit, "1: error: more than one place", "      5:", "     12:")

    def test_lines_alone_need_one_region(self) -> None:
        self.refuses("@@ zrt.scalars\n+zrt.yield\n", "begins lines 4, 10")

    def test_no_region(self) -> None:
        self.refuses("@@ zrt.handler @end\n-x\n", "no region", "zrt.handler @finish {")
        # A name is a whole name.
        self.refuses("@@ zrt.handler @fin\n-x\n", "no region")

    def test_unbound_names(self) -> None:
        head = "@@ zrt.scalars @scalars\n-zrt.store_slot %1, @scalar[0]\n"
        unbound = head + "+zrt.store_slot %9, @scalar[0]\n"
        self.refuses(unbound, "3: error: %9 is neither matched nor defined")
        unbound = head + "+zrt.store_slot %1, $symbol\n"
        self.refuses(unbound, "3: error: $symbol is neither matched nor defined")
        unbound = head + "+zrt.store_slot %1, ...\n"
        self.refuses(unbound, "3: error: '...' in an added line")

    def test_one_value_is_not_two(self) -> None:
        edit = """@@ zrt.scalars @scalars
-%1 = arith.mulf %a, %b : f64
"""
        self.refuses(edit, "no such line")

    def test_a_line_that_stands_nowhere(self) -> None:
        edit = """@@ zrt.handler @finish
 zrt.count_arrivals to @arrivals
...
+zrt.commit @outcome
...
 zrt.commit @outcome
"""
        self.refuses(edit, "4: error: no line beside it")

    def test_nothing_changes(self) -> None:
        self.refuses("# RUN: true\n", "there are no edits")
        context = "@@ zrt.handler @finish_last\n zrt.commit @outcome\n"
        self.refuses(context, "changes nothing")
        same = context.replace("\n ", "\n-") + "+zrt.commit @outcome\n"
        self.refuses(same, "1: error: this edit changes nothing")

    def test_a_line_without_a_kind(self) -> None:
        self.refuses("@@ zrt.handler @finish\nzrt.commit\n", "2: error: a line of")

    def test_a_copy_is_not_edited_at_once(self) -> None:
        self.refuses("@@ copy zrt.handler @finish as @x\n-zrt.yield\n", "of its own")


if __name__ == "__main__":
    unittest.main()
