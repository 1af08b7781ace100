import { Download, Eye } from 'lucide-react'
import { useState } from 'react'
import { shortDigest } from '../../shared/contracts/client/digest.ts'
import { type Problem, problemFrom } from '../../shared/contracts/client/problem.ts'
import { fetchBytes, saveAs, sha256Of } from '../api/download.ts'
import type { Artifact } from '../api/types.ts'
import { IconButton } from '../forms/choices.tsx'
import { fileSize, shown } from '../kit/format.ts'
import { CopyButton } from '../ui/copy.tsx'
import { ProblemText } from '../ui/failure.tsx'
import { type Column, DataTable } from '../ui/table.tsx'
import { NodeLink } from '../values/links.tsx'
import { TimeText } from '../values/time.tsx'
import { tProof } from '../words/proof.ts'

const MAX_PREVIEW = 2_000_000
const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const TEXT = /^text\/|[/+](json|xml|yaml|x-yaml|javascript|x-ndjson|jsonl|csv|svg\+xml)\b/

type Preview = { artifact: Artifact; text: string } | { artifact: Artifact; image: string }
type Said = { problem: Problem } | { words: string; bad?: true } | null

/** Reads the bytes of an artifact, and saves or shows them only if they have the recorded digest. */
const useArtifacts = (operation_id: string) => {
  const [said, setSaid] = useState<Said>(null)
  const [preview, setPreview] = useState<Preview | null>(null)
  const [busy, setBusy] = useState(false)
  const withBytes = async (artifact: Artifact, use: (blob: Blob) => Promise<Said>) => {
    if (busy) return
    setBusy(true)
    setPreview(null)
    setSaid(null)
    const path = `/v1/operations/${encodeURIComponent(operation_id)}/artifacts/${encodeURIComponent(artifact.artifact_id)}/content`
    const got = await fetchBytes(path)
    if ('problem' in got) setSaid(got)
    else if ((await sha256Of(got.blob)) !== artifact.sha256)
      setSaid({ words: tProof.artifacts.differs(artifact.name), bad: true })
    else setSaid(await use(got.blob))
    setBusy(false)
  }
  const save = (artifact: Artifact) =>
    withBytes(artifact, async (blob) => {
      saveAs(blob, artifact.name)
      return { words: tProof.artifacts.matches(artifact.name) }
    })
  const show = async (artifact: Artifact) => {
    if (artifact.size > MAX_PREVIEW) return setSaid({ words: tProof.artifacts.too_large })
    await withBytes(artifact, async (blob) => {
      const { media_type } = artifact
      if (IMAGES.has(media_type)) setPreview({ artifact, image: await dataUrl(blob, media_type) })
      else if (TEXT.test(media_type)) setPreview({ artifact, text: textOf(await blob.text(), media_type) })
      else return { words: tProof.artifacts.no_preview }
      return { words: tProof.artifacts.matches(artifact.name) }
    })
  }
  return { said, preview, save: (one: Artifact) => void save(one), show: (one: Artifact) => void show(one) }
}

/** The artifacts of nodes, with their content. */
export const ArtifactTable = ({ operation_id, rows }: { operation_id: string; rows: Artifact[] }) => {
  const { said, preview, save, show } = useArtifacts(operation_id)
  const content: Column<Artifact> = {
    name: tProof.artifacts.columns.get,
    cell: (artifact) => <Content artifact={artifact} save={save} show={show} />,
  }
  return (
    <>
      <div role="status" className="empty:hidden border-b border-line p-4">
        {said === null ? null : 'problem' in said ? (
          <ProblemText problem={said.problem} />
        ) : (
          <p className={said.bad ? 'text-bad' : ''}>{said.words}</p>
        )}
      </div>
      <DataTable
        caption={tProof.artifacts.caption}
        columns={[...columnsOf(operation_id), content]}
        rows={rows}
        keyOf="artifact_id"
      />
      {preview ? <Shown {...preview} /> : null}
    </>
  )
}

const columnsOf = (operation_id: string): Column<Artifact>[] => [
  {
    name: tProof.artifacts.columns.name,
    kind: 'lead',
    className: 'font-medium wrap-anywhere',
    cell: ({ name }) => name,
  },
  { name: tProof.artifacts.columns.kind, cell: ({ kind, media_type }) => <span title={media_type}>{kind}</span> },
  {
    name: tProof.artifacts.columns.node,
    className: 'wrap-anywhere',
    cell: ({ node_id }) => <NodeLink operation_id={operation_id} node_id={node_id} />,
  },
  { name: tProof.artifacts.columns.size, kind: 'number', cell: ({ size }) => fileSize(size) },
  {
    name: tProof.artifacts.columns.sha256,
    cell: ({ sha256 }) => (
      <span className="inline-flex items-center gap-1 whitespace-nowrap">
        <code title={sha256}>{shortDigest(sha256)} …</code> <CopyButton text={sha256} />
      </span>
    ),
  },
  {
    name: tProof.artifacts.columns.at,
    className: 'whitespace-nowrap',
    cell: ({ created_at }) => <TimeText at={created_at} />,
  },
]

const Shown = (preview: Preview) => (
  <section className="flex flex-col gap-2 border-t border-line p-4" aria-label={tProof.artifacts.preview}>
    <h2 className="card-title wrap-anywhere">{preview.artifact.name}</h2>
    {'image' in preview ? (
      <img src={preview.image} alt={preview.artifact.name} className="max-w-full" />
    ) : (
      <>
        {/html|svg|xml/.test(preview.artifact.media_type) ? (
          <p className="text-table text-muted">{tProof.artifacts.source}</p>
        ) : null}
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls must be reachable by keyboard */}
        <pre className="code max-h-96" tabIndex={0}>
          {preview.text}
        </pre>
      </>
    )}
  </section>
)

type ContentProps = { artifact: Artifact } & Record<'save' | 'show', (one: Artifact) => void>

/** Preview and download, or a note about where the bytes are. */
const Content = ({ artifact, save, show }: ContentProps) => {
  const { name, status, uri, expires_at } = artifact
  if (expires_at !== null) return <span className="text-muted">{tProof.artifacts.gone}</span>
  if (status === 'pending') return <span className="text-muted">{tProof.artifacts.pending}</span>
  if (uri !== null && /^https?:\/\//.test(uri))
    return (
      <a href={uri} target="_blank" rel="noopener noreferrer">
        {tProof.artifacts.elsewhere}
      </a>
    )
  return (
    <span className="flex gap-1">
      <IconButton icon={Eye} word={tProof.artifacts.preview_one(name)} onClick={() => show(artifact)} />
      <IconButton icon={Download} word={tProof.artifacts.download_one(name)} onClick={() => save(artifact)} />
    </span>
  )
}

const dataUrl = (blob: Blob, media_type: string): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(problemFrom(0, null))
    reader.readAsDataURL(new Blob([blob], { type: media_type }))
  })

/** A text as it is shown: JSON in lines, line ends of any system, no character that deceives. */
export const textOf = (text: string, media_type: string): string =>
  shown(readable(text.replaceAll('\r\n', '\n'), media_type))

const readable = (text: string, media_type: string): string => {
  if (!/json$/.test(media_type)) return text
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
