import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, normalize } from 'node:path'

/** What a volume holds, by path. */
export type Files = ReadonlyMap<string, Buffer>

/**
 * A folder whose files change all at once, as the kubelet changes mounted Secrets: each file is a link through `..data` to a
 * folder that is never written again, and `..data` is swapped by a rename. A reader sees the old files or the new ones.
 */
export class AtomicFolder {
  readonly path: string
  readonly #mode: number
  #present: Files | undefined

  constructor(path: string, mode = 0o644) {
    this.path = path
    this.#mode = mode
    mkdirSync(path, { recursive: true })
  }

  /** Writes these files and no others; nothing is touched when nothing differs. */
  write(files: Files): void {
    if (this.#present && same(this.#present, files)) return
    const next = mkdtempSync(join(this.path, '..version-'))
    for (const [path, content] of files) {
      if (normalize(path).startsWith('..')) throw new Error(`the path ${path} leads out of the volume; choose another`)
      mkdirSync(dirname(join(next, path)), { recursive: true })
      writeFileSync(join(next, path), content, { mode: this.#mode })
    }
    const before = this.#current()
    const link = join(this.path, '..data.new')
    rmSync(link, { force: true })
    symlinkSync(next, link)
    renameSync(link, join(this.path, '..data'))
    this.#link(new Set([...files.keys()].map((path) => path.split('/')[0]!)))
    if (before) rmSync(before, { recursive: true, force: true })
    this.#present = files
  }

  #current(): string | undefined {
    try {
      return readlinkSync(join(this.path, '..data'))
    } catch {
      return undefined
    }
  }

  #link(names: Set<string>): void {
    const present = new Set(readdirSync(this.path).filter((name) => !name.startsWith('..')))
    for (const name of names) if (!present.has(name)) symlinkSync(join('..data', name), join(this.path, name))
    for (const name of present) if (!names.has(name)) rmSync(join(this.path, name))
  }
}

const same = (a: Files, b: Files): boolean =>
  a.size === b.size && [...a].every(([path, content]) => b.get(path)?.equals(content))
