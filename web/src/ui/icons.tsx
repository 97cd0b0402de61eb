// Every picture of the page, drawn here: no icon font, no emoji (which are boxes on machines without the font).
import type { VNode } from "preact";

const PATHS = {
  mark: <path d="M2 3.5h4.5v4.5H11v4.5h3" />,
  runs: <path d="M2.5 4h11M2.5 8h11M2.5 12h7" />,
  pin: <path d="M5.500 2h5M6.500 2v4.500L4.500 9.500h7L9.500 6.500V2M8 9.500V14" />,
  parallel: <path d="M3 2.500v11M8 2.500v11M13 2.500v11M3 11l5-6 5 4M3 5l5 6 5-5" />,
  debug: (
    <>
      <circle cx="4" cy="3.5" r="1.7" />
      <circle cx="12" cy="8" r="1.7" />
      <circle cx="4" cy="12.5" r="1.7" />
      <path d="M4 5.2v5.6M5.6 4.3l4.8 2.9" />
    </>
  ),
  scalars: <path d="M2 2.5V13.5H14M4 10.5l3-4 2.5 2.5L13.5 4" />,
  stats: (
    <path d="M2.5 2.5h3v3h-3zM6.5 2.5h3v3h-3zM10.5 2.5h3v3h-3zM2.5 6.5h3v3h-3zM6.5 6.5h3v3h-3zM2.5 10.5h3v3h-3zM6.5 10.5h3v3h-3zM10.5 10.5h3v3h-3z" />
  ),
  studies: <path d="M2.5 13.5v-11M2.5 13.5h11M5 10.5v.01M7 6.5v.01M9 9v.01M11 4v.01M12.5 7.5v.01" stroke-width="1.8" />,
  speed: (
    <>
      <circle cx="8" cy="8.500" r="5.500" />
      <path d="M8 5.200v3.300l2.300 1.500M6.300 1.500h3.400" />
    </>
  ),
  ranks: <path d="M2.5 3h4.5v4H2.5zM9 3h4.5v4H9zM2.5 9.5h4.5v4H2.5zM9 9.5h4.5v4H9z" />,
  diagnose: <path d="M8 2.500v11M2.500 8h11" stroke-width="2" />,
  crash: <path d="M8 1.8 14.4 13.5H1.6zM8 6v3.6M8 11.6v.1" />,
  dumps: (
    <>
      <ellipse cx="8" cy="3.800" rx="5" ry="1.900" />
      <path d="M3 3.800v8.400c0 1 2.200 1.900 5 1.900s5-.900 5-1.900V3.800M3 8c0 1 2.200 1.900 5 1.900s5-.900 5-1.900" />
    </>
  ),
  comparison: <path d="M2 2.500h5v11H2zM9 2.500h5v11H9zM4 5.500h1M4 8h1M11 5.500h1M11 8h1M11 10.500h1" />,
  ckpt: <path d="M3 2.500h7.500L13.500 5.500v8h-10.500zM5.500 2.500v3.500h4V2.500M5.500 13.500v-4h5.500v4" />,
  settings: (
    <>
      <circle cx="8" cy="8" r="2.2" />
      <path d="M8 1.8v2M8 12.2v2M1.8 8h2M12.2 8h2M3.6 3.6l1.4 1.4M11 11l1.4 1.4M12.4 3.6 11 5M5 11l-1.4 1.4" />
    </>
  ),
  help: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M6.2 6.3a1.9 1.9 0 1 1 2.7 1.8c-.6.3-.9.7-.9 1.3M8 11.6v.1" />
    </>
  ),
  play: <path class="solid" d="M4.5 2.8v10.4L13 8z" />,
  pause: <path class="solid" d="M4 3h3v10H4zM9 3h3v10H9z" />,
  stop: <path class="solid" d="M3.5 3.5h9v9h-9z" />,
  next: <path d="M2 8h9M8 4.5 11.5 8 8 11.5M14 3v10" />,
  runTo: <path d="M8 2v8M4.5 6.8 8 10.2l3.5-3.4M3 13.5h10" />,
  step: <path d="M2 12.5h4v-4h4v-4h4" />,
  pynative: <path d="M2 3.500h12M2 8h5M2 12.500h5M9.500 10.200h4.500M12 8l2.200 2.200L12 12.500" />,
  until: (
    <>
      <circle cx="8" cy="8" r="6" />
      <path d="M8 4.5V8l2.5 1.5" />
    </>
  ),
  detach: <path d="M6.5 9.5 3.8 12.2M9.5 6.5l2.7-2.7M5 3.2 6.2 5M3.2 5 5 6.2M11 12.8 9.8 11M12.8 11 11 9.8" />,
  search: (
    <>
      <circle cx="7" cy="7" r="4.2" />
      <path d="m10.2 10.2 3.3 3.3" />
    </>
  ),
  star: <path class="solid" d="m8 1.6 1.9 4.1 4.5.5-3.3 3 .9 4.5L8 11.4l-4 2.3.9-4.5-3.3-3 4.5-.5z" />,
  circle: <circle class="solid" cx="8" cy="8" r="4.6" />,
  target: (
    <>
      <circle cx="8" cy="8" r="5.4" />
      <circle class="solid" cx="8" cy="8" r="2.6" />
    </>
  ),
  triangle: <path class="solid" d="M8 2.6 14 13H2z" />,
  diamond: <path class="solid" d="M8 2.2 13.8 8 8 13.8 2.2 8z" />,
  ring: <circle cx="8" cy="8" r="4.2" />,
  half: (
    <>
      <circle cx="8" cy="8" r="4.2" />
      <path class="solid" d="M8 3.8a4.2 4.2 0 0 1 0 8.4z" />
    </>
  ),
  lost: <path d="M2 8h3l1.5-3.5 2 7L10 8h1M13 8h1" />,
  check: <path d="m3 8.5 3.2 3.2L13 4.8" />,
  cross: <path d="m4 4 8 8M12 4l-8 8" />,
  plus: <path d="M8 3v10M3 8h10" />,
  minus: <path d="M3 8h10" />,
  fit: <path d="M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10" />,
  link: (
    <path d="M6.5 9.5 9.5 6.5M7 4.5l1.5-1.5a3 3 0 0 1 4.3 4.3L11.3 8.8M9 11.5 7.5 13A3 3 0 0 1 3.2 8.700L4.7 7.2" />
  ),
  copy: <path d="M5.5 5.500h8v8h-8zM2.5 10.500v-8h8" />,
  download: <path d="M8 2v8M4.7 7 8 10.2 11.3 7M2.5 13.500h11" />,
  right: <path d="m6 3.5 4.5 4.500L6 12.5" />,
  down: <path d="m3.5 6 4.5 4.500L12.5 6" />,
  up: <path d="m3.5 10 4.5-4.500L12.5 10" />,
  left: <path d="M10 3.5 5.5 8l4.5 4.5" />,
  more: <path d="M3.5 8v.01M8 8v.01M12.5 8v.01" stroke-width="2.6" />,
  sun: (
    <>
      <circle cx="8" cy="8" r="5.6" />
      <path class="solid" d="M8 2.400a5.6 5.6 0 0 1 0 11.200z" />
    </>
  ),
  file: <path d="M4 1.800h5l3.5 3.500v9H4zM9 1.800v3.500h3.5" />,
  refresh: <path d="M13 8a5 5 0 1 1-1.5-3.600M13 2.500v3h-3" />,
  fold: <path d="M3 3.500h10M3 12.500h10M8 5v2M8 11V9M6.5 6.5 8 8l1.5-1.500M6.5 9.5 8 8l1.5 1.5" />,
} satisfies Record<string, VNode>;

export type IconName = keyof typeof PATHS;

export function Icon({ name, tone, title }: { name: IconName; tone?: string; title?: string }) {
  return (
    <svg
      class={`icon${tone ? ` tone-${tone}` : ""}`}
      viewBox="0 0 16 16"
      aria-hidden={title ? undefined : "true"}
      role={title ? "img" : undefined}
      aria-label={title}
    >
      {PATHS[name]}
    </svg>
  );
}
