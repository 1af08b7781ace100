CREATE TABLE IF NOT EXISTS "operations"."agents" (
	"agent" text PRIMARY KEY NOT NULL,
	"machine" text NOT NULL,
	"pools" text[] NOT NULL,
	"labels" jsonb NOT NULL,
	"version" text,
	"concurrency" integer,
	"draining" boolean NOT NULL,
	"seen_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"since" timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "operations"."executions" ADD COLUMN IF NOT EXISTS "agent" text;