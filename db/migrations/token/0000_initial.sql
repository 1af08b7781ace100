CREATE SCHEMA "token";
--> statement-breakpoint
CREATE TABLE "token"."key_events" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "token"."key_events_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"actor" text NOT NULL,
	"on_behalf_of" text,
	"roles" text[] DEFAULT '{}' NOT NULL,
	"action" text NOT NULL,
	"object" text NOT NULL,
	"outcome" text NOT NULL,
	"reason" text,
	"before_hash" text,
	"after_hash" text,
	"request_id" text,
	"command_id" uuid,
	"body" text NOT NULL,
	"mac" text NOT NULL,
	"seal_seq" bigint,
	"prev_hash" text,
	"seal_hash" text,
	CONSTRAINT "key_events_seal_seq_unique" UNIQUE("seal_seq")
);
--> statement-breakpoint
CREATE TABLE "token"."keys" (
	"kid" text PRIMARY KEY NOT NULL,
	"status" text NOT NULL,
	"bits" integer NOT NULL,
	"public_jwk" jsonb NOT NULL,
	"private_key" "bytea",
	"kek_id" text,
	"published_at" timestamp with time zone NOT NULL,
	"activated_at" timestamp with time zone,
	"retired_at" timestamp with time zone,
	"verify_until" timestamp with time zone,
	"killed_at" timestamp with time zone,
	CONSTRAINT "keys_status" CHECK ("token"."keys"."status" in ('next', 'active', 'retired', 'killed'))
);
--> statement-breakpoint
CREATE TABLE "token"."outbox" (
	"id" bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY (sequence name "token"."outbox_id_seq" INCREMENT BY 1 MINVALUE 1 MAXVALUE 9223372036854775807 START WITH 1 CACHE 1),
	"event_id" uuid NOT NULL,
	"agg_type" text NOT NULL,
	"agg_id" text NOT NULL,
	"agg_version" bigint NOT NULL,
	"type" text NOT NULL,
	"schema_version" integer DEFAULT 1 NOT NULL,
	"payload" jsonb NOT NULL,
	"request_id" text,
	"trace" text,
	"occurred_at" timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
	"pub_seq" bigint,
	"js_seq" bigint,
	"published_at" timestamp with time zone,
	"parked" text,
	CONSTRAINT "outbox_event_id_unique" UNIQUE("event_id"),
	CONSTRAINT "outbox_pub_seq_unique" UNIQUE("pub_seq"),
	CONSTRAINT "outbox_agg_type_agg_id_agg_version_unique" UNIQUE("agg_type","agg_id","agg_version")
);
--> statement-breakpoint
CREATE TABLE "token"."relay_state" (
	"name" text PRIMARY KEY NOT NULL,
	"epoch" bigint DEFAULT 0 NOT NULL,
	"next" bigint DEFAULT 1 NOT NULL,
	"stream_created" text,
	"js_last_seq" bigint
);
--> statement-breakpoint
CREATE INDEX "key_events_id_index" ON "token"."key_events" USING btree ("id") WHERE seal_seq is null;--> statement-breakpoint
CREATE INDEX "key_events_actor_id_index" ON "token"."key_events" USING btree ("actor","id");--> statement-breakpoint
CREATE INDEX "key_events_object_id_index" ON "token"."key_events" USING btree ("object","id");--> statement-breakpoint
CREATE UNIQUE INDEX "keys_one_active" ON "token"."keys" USING btree ("status") WHERE status = 'active';--> statement-breakpoint
CREATE UNIQUE INDEX "keys_one_next" ON "token"."keys" USING btree ("status") WHERE status = 'next';--> statement-breakpoint
CREATE INDEX "outbox_id_index" ON "token"."outbox" USING btree ("id") WHERE pub_seq is null;--> statement-breakpoint
CREATE INDEX "outbox_pub_seq_index" ON "token"."outbox" USING btree ("pub_seq") WHERE published_at is null and pub_seq is not null;