// What a comparison notes of a row, in the page's words and language: left is A here, right is B.
import { lang } from "../i18n";

type Say = (found: string[]) => [en: string, zh: string];
const SIDE: Record<string, string> = { left: "A", right: "B" };

const NOTES: [RegExp, Say][] = [
  [/^only on the (left|right)$/, ([, side]) => [`only in ${SIDE[side]}`, `仅 ${SIDE[side]} 有`]],
  [/^shape (\S+) against (\S+)$/, ([, a, b]) => [`shape ${a} against ${b}`, `形状 ${a} 与 ${b}`]],
  [/^(\S+) against (\S+), equal values$/, ([, a, b]) => [`${a} against ${b}, equal values`, `${a} 与 ${b}，数值相等`]],
  [/^(\S+) against (\S+)$/, ([, a, b]) => [`${a} against ${b}`, `${a} 与 ${b}`]],
  [
    /^([\d,]+) elements are NaN or Inf on one side only$/,
    ([, n]) => [`${n} elements are NaN or Inf on one side only`, `${n} 个元素仅在一侧为 NaN 或 Inf`],
  ],
  [
    /^(\S+) of the decisions fell the other way$/,
    ([, n]) => [`${n} of the decisions fell the other way`, `${n} 的判定结果相反`],
  ],
  [
    /^every element is larger by the same (\S+): a factor, not rounding$/,
    ([, n]) => [
      `every element is larger by the same ${n}: a factor, not rounding`,
      `每个元素都大了相同的 ${n}：是系数，而非舍入`,
    ],
  ],
  [/^both are zero up to rounding$/, () => ["both are zero up to rounding", "两者在舍入范围内均为零"]],
  [
    /^single elements where rounding decided a comparison/,
    () => [
      "single elements where rounding decided a comparison (ReLU, max)",
      "个别元素因舍入改变了比较结果（ReLU、max）",
    ],
  ],
  [/^equal when transposed$/, () => ["equal when transposed", "转置后相等"]],
  [/^equal where they overlap$/, () => ["equal where they overlap", "重叠部分相等"]],
  [/^equal with the sign turned$/, () => ["equal with the sign turned", "取反后相等"]],
  [
    /^equal when flipped along axis (\d+)$/,
    ([, axis]) => [`equal when flipped along axis ${axis}`, `沿轴 ${axis} 翻转后相等`],
  ],
  [
    /^equal when shifted by one along axis (\d+)$/,
    ([, axis]) => [`equal when shifted by one along axis ${axis}`, `沿轴 ${axis} 移动一位后相等`],
  ],
  [/^the same values in another order$/, () => ["the same values in another order", "数值相同，顺序不同"]],
  [
    /^the (left|right) side is rounded to (\S+)$/,
    ([, side, dtype]) => [`${SIDE[side]} is rounded to ${dtype}`, `${SIDE[side]} 被舍入为 ${dtype}`],
  ],
  [/^the right side is (\S+) times the left$/, ([, n]) => [`B is ${n} times A`, `B 是 A 的 ${n} 倍`]],
  [/^the right side is larger by (\S+) everywhere$/, ([, n]) => [`B is larger by ${n} everywhere`, `B 处处大 ${n}`]],
  [
    /^the difference is one constant per channel, like a bias$/,
    () => ["the difference is one constant per channel, like a bias", "每个通道相差一个常数，类似偏置"],
  ],
  [/^only the border differs, like padding$/, () => ["only the border differs, like padding", "仅边缘不同，类似填充"]],
  [
    /^only ([\d,]+) of ([\d,]+) elements differ$/,
    ([, n, all]) => [`only ${n} of ${all} elements differ`, `${all} 个元素中仅 ${n} 个不同`],
  ],
];

/** A note of one or several parts; a part nobody knows stays as it is. */
export function noteText(note: string): string {
  return note
    .split("; ")
    .map((part) => {
      for (const [pattern, say] of NOTES) {
        const found = pattern.exec(part);
        if (found) return say(found)[lang.value === "zh" ? 1 : 0];
      }
      return part;
    })
    .join(lang.value === "zh" ? "；" : "; ");
}
